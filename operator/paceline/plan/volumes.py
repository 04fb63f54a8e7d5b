"""Messages about a volume that another pod uses."""

import re

IN_USE = re.compile(
    r"Multi-Attach|ReadWriteOncePod|already (?:exclusively )?(?:attached|used)|volume is in use", re.IGNORECASE
)
"""Words of the attach/detach controller, of the scheduler and of CSI drivers. That other pod will end."""
