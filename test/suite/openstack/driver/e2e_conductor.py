"""magnum-conductor whose poll of operations comes every second, not every ten: the spacing
cannot be configured. It never asks how the clusters are, since nobody answers there, and it
leaves a file when it listens, since a call before that is lost."""
import os

from magnum.common import rpc_service
from magnum.service import periodic

periodic.MagnumPeriodicTasks._periodic_spacing['sync_cluster_status'] = 1
periodic.MagnumPeriodicTasks._periodic_tasks = [
    (name, task) for name, task in periodic.MagnumPeriodicTasks._periodic_tasks
    if name != 'sync_cluster_health_status']

LISTENS = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'listens')
start = rpc_service.Service.start


def start_and_tell(self):
    start(self)
    open(LISTENS, 'w').close()


rpc_service.Service.start = start_and_tell

from magnum.cmd.conductor import main  # noqa: E402,F401
