"""magnum-conductor whose poll of operations comes every second, not every ten: the spacing
cannot be configured."""
from magnum.service import periodic

periodic.MagnumPeriodicTasks._periodic_spacing['sync_cluster_status'] = 1

from magnum.cmd.conductor import main  # noqa: E402,F401
