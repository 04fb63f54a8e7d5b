"""The site of these pages: `make docs`. Links to files beside docs/ are checked, and copied as downloads."""

project = "Paceline"
copyright = "the Paceline authors"
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "Paceline"
html_static_path: list[str] = []
html_copy_source = False
html_show_sourcelink = False
root_doc = "index"
source_suffix = {".md": "markdown"}
highlight_language = "text"
myst_heading_anchors = 4  # as GitHub makes them, so that a link works in both places
