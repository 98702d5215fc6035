"""A driver of Magnum without Heat: each node is a server of Nova's.

magnum-conductor loads it by the entry point that Go writes beside it. Everything before and
after it (API, messages, conductor, database, the poll that ends an operation) is Magnum's
own. As with Heat, an operation is accepted first and comes to its end, or fails, when the
poll looks at what became of the servers.

The label nodes_told_by of a cluster says what shows to which node group a server belongs:
"metadata" (the default), or "names": those of Magnum's Heat drivers and nothing else.
"""
import os

from novaclient import exceptions as refusals
from oslo_utils import uuidutils

from magnum.common import clients
from magnum.common import exception
from magnum.common import short_id
from magnum.drivers.common import driver
from magnum.objects import fields

S = fields.ClusterStatus
DONE = {S.CREATE_IN_PROGRESS: S.CREATE_COMPLETE, S.UPDATE_IN_PROGRESS: S.UPDATE_COMPLETE,
        S.DELETE_IN_PROGRESS: S.DELETE_COMPLETE}
FAILED = {S.CREATE_IN_PROGRESS: S.CREATE_FAILED, S.UPDATE_IN_PROGRESS: S.UPDATE_FAILED}
HERE = os.path.dirname(os.path.abspath(__file__))
HOLD = os.path.join(HERE, 'hold')   # while it is there nothing ends
RESIZED = os.path.join(HERE, 'resized')   # a line for each resize that was taken up
polled = set()   # clusters that a poll is at
refused = {}     # node group: why Nova made no more of its servers
scaled = {}      # node group: the count that was last asked of Nova
stacks = {}      # node group: the name that a stack of it would have


class Driver(driver.Driver):
    @property
    def provides(self):
        return [{'server_type': 'vm', 'os': 'fedora-coreos', 'coe': 'kubernetes'}]

    def create_cluster(self, context, cluster, cluster_create_timeout):
        cluster.stack_id = uuidutils.generate_uuid()
        for group in cluster.nodegroups:
            self._scale(context, cluster, group, group.node_count)

    def resize_cluster(self, context, cluster, resize_manager, node_count, nodes_to_remove,
                       nodegroup=None):
        try:
            self._scale(context, cluster, nodegroup, node_count, set(nodes_to_remove or ()))
        finally:
            with open(RESIZED, 'a') as f:   # the tests count them
                f.write('%s %d\n' % (nodegroup.name, node_count))

    def update_cluster(self, context, cluster, scale_manager=None, rollback=False):
        group = cluster.default_ng_worker
        group.status = S.UPDATE_IN_PROGRESS
        group.save()
        self._scale(context, cluster, group, group.node_count)

    def delete_cluster(self, context, cluster):
        for server in self._servers(context, cluster):
            self._end(server)

    def create_nodegroup(self, context, cluster, nodegroup):
        nodegroup.stack_id = uuidutils.generate_uuid()
        self._scale(context, cluster, nodegroup, nodegroup.node_count)

    def update_nodegroup(self, context, cluster, nodegroup):
        self._scale(context, cluster, nodegroup, nodegroup.node_count)

    def delete_nodegroup(self, context, cluster, nodegroup):
        nodegroup.save()   # the conductor has set its status and leaves this to the driver
        self._scale(context, cluster, nodegroup, 0)

    def upgrade_cluster(self, *args, **kwargs):
        raise NotImplementedError()

    create_federation = update_federation = delete_federation = upgrade_cluster

    def update_cluster_status(self, context, cluster, use_admin_ctx=False):
        if cluster.stack_id is None or cluster.uuid in polled or os.path.exists(HOLD):
            return
        polled.add(cluster.uuid)
        try:
            self._poll(context, cluster)
        except exception.ClusterNotFound:
            pass
        finally:
            polled.discard(cluster.uuid)

    def _servers(self, context, cluster, group=None, everywhere=False):
        find = {'all_tenants': 1, 'project_id': cluster.project_id} if everywhere else {}
        out = [s for s in clients.OpenStackClients(context).nova().servers.list(search_opts=find)
               if s.metadata.get('e2e_cluster') == cluster.uuid
               and (group is None or s.metadata.get('e2e_group') == group.uuid)]
        return sorted(out, key=lambda s: int(s.metadata['e2e_index']))

    def _end(self, server):
        try:
            server.delete()
        except refusals.NotFound:   # a second delete of the cluster is under way, say
            pass

    def _why(self, context, server):   # a list has no faults of servers that found no host
        fault = getattr(clients.OpenStackClients(context).nova().servers.get(server.id), 'fault', {})
        return 'Resource %s failed: %s' % (server.name, fault.get('message', ''))

    def _name(self, cluster, group, index):
        if cluster.labels.get('nodes_told_by') != 'names':
            return '%s-%s-%d' % (cluster.name, group.name, index)
        base = cluster.name[:30] if group.is_default else cluster.name[:20] + '-' + group.name[:9]
        key = cluster.uuid if group.is_default else group.uuid
        stack = stacks.setdefault(key, '%s-%s' % (base, short_id.generate_id()))
        return '%s-%s-%d' % (stack.lower(), 'master' if group.role == 'master' else 'node', index)

    def _scale(self, context, cluster, group, want, remove=()):
        all_of_it = clients.OpenStackClients(context)
        nova = all_of_it.nova()
        refused.pop(group.uuid, None)
        have = self._servers(context, cluster, group)
        free = max([int(s.metadata['e2e_index']) for s in have], default=-1) + 1
        for server in [s for s in have if s.id in remove]:   # unknown names are ignored, as by Heat
            self._end(server)
        stay = [s for s in have if s.id not in remove]
        for server in stay[want:]:
            self._end(server)
        if len(stay) < want:
            self._make(all_of_it, cluster, group, range(free, free + want - len(stay)))
        scaled[group.uuid] = want

    def _make(self, all_of_it, cluster, group, indices):
        nova = all_of_it.nova()
        template = cluster.cluster_template
        image = group.image_id or template.image_id
        if not uuidutils.is_uuid_like(image):
            image = next(i.id for i in all_of_it.glance().images.list() if i.name == image)
        flavor = group.flavor_id or template.flavor_id
        flavor = next(f.id for f in nova.flavors.list() if flavor in (f.name, f.id))
        network = cluster.fixed_network or template.fixed_network
        if not uuidutils.is_uuid_like(network):
            network = all_of_it.neutron().list_networks(name=network)['networks'][0]['id']
        for index in indices:
            mark = {'e2e_cluster': cluster.uuid, 'e2e_group': group.uuid, 'e2e_index': str(index)}
            if cluster.labels.get('nodes_told_by') != 'names':
                mark['magnum_nodegroup'] = group.uuid
            try:
                nova.servers.create(self._name(cluster, group, index), image=image, flavor=flavor,
                                    nics=[{'net-id': network}], key_name=cluster.keypair, meta=mark)
            except refusals.ClientException as e:   # it is the operation that fails, later
                refused[group.uuid] = str(e)
                break

    def _poll(self, context, cluster):
        def rows():
            cluster.refresh(context)
            return [cluster.status] + [(g.uuid, g.status, g.node_count, g.stack_id) for g in cluster.nodegroups]

        before = rows()
        if cluster.status not in DONE:
            return
        deleting = cluster.status == S.DELETE_IN_PROGRESS
        over, gone, why = [], [], None
        asked = dict(scaled)   # before the servers are read: what was asked for shows in them
        all_servers = self._servers(context, cluster, everywhere=True)
        for group in cluster.nodegroups:
            servers = [s for s in all_servers if s.metadata.get('e2e_group') == group.uuid]
            if deleting or group.status == S.DELETE_IN_PROGRESS:
                if servers:
                    return
                gone.append(group)
                continue
            broken = [s for s in servers if s.status == 'ERROR']
            if group.stack_id is None or any(s.status not in ('ACTIVE', 'ERROR') for s in servers):
                return
            if len(servers) > group.node_count or asked.get(group.uuid) != group.node_count:
                return
            if group.uuid in refused or broken:
                reason = refused.get(group.uuid) or self._why(context, broken[0])
                if group.status.endswith('_IN_PROGRESS'):
                    why = reason
                    group.status, group.status_reason = FAILED.get(group.status, S.UPDATE_FAILED), reason
            elif group.status.endswith('_IN_PROGRESS'):
                group.status, group.status_reason = DONE.get(group.status, group.status), None
            group.node_addresses = [a['addr'] for s in servers for n in s.addresses.values() for a in n]
            over.append(group)
        if rows() != before:
            return   # a request came in meanwhile: the next poll looks again
        for group in over:
            group.save()
        if not deleting:
            for group in gone:
                group.destroy()
        cluster.status = (FAILED if why else DONE).get(cluster.status, cluster.status)
        cluster.status_reason = why
        if not deleting:
            cluster.api_address = 'https://127.0.0.1:1'   # nobody answers there
            cluster.save()   # of one that is deleted the conductor removes the rows itself
