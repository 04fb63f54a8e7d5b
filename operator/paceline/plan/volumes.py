"""What the cluster says of a volume that another pod has."""

import re

IN_USE = re.compile(
    r"Multi-Attach|ReadWriteOncePod|already (?:exclusively )?(?:attached|used)|volume is in use", re.IGNORECASE
)
"""Words of the attach/detach controller, of the scheduler and of CSI drivers. That pod will end."""
