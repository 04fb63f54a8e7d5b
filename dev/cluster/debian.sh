# Sourced with buildah.sh by the scripts that make an image of a Debian.
suite=bookworm

# debian_root DIRECTORY PACKAGES: a root file system, from the mirror of this machine.
debian_root() {
    local mirror log
    log=$cache/$(basename "$1").log
    debian_mirror "$suite"
    say "debootstrap $suite (a minute or more)"
    debootstrap --variant=minbase --include="$2" "$suite" "$1" "$mirror" >"$log" 2>&1 ||
        fail "debootstrap failed: $(tail -1 "$log") (more in $log)"
    rm -rf "$1"/{var/cache/apt/*,var/lib/apt/lists/*,var/log/*,usr/share/{doc,man,locale,info}/*,etc/apt/sources.list}
}
