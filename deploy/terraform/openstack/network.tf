data "openstack_networking_network_v2" "machines" {
  name = var.network
}

data "openstack_images_image_v2" "image" {
  name        = var.image
  most_recent = true
}

data "openstack_compute_flavor_v2" "leader" {
  name = var.leader_flavor
}

locals {
  # The API server, kubelets, and the VXLAN of flannel or cilium; or everything.
  between = {
    api     = { protocol = "tcp", port = 6443, version = "IPv4", open = false, worker = false }
    kubelet = { protocol = "tcp", port = 10250, version = "IPv4", open = false, worker = true }
    vxlan   = { protocol = "udp", port = 8472, version = "IPv4", open = false, worker = true }
    all     = { protocol = null, port = null, version = "IPv4", open = true, worker = true }
    all6    = { protocol = null, port = null, version = "IPv6", open = true, worker = true }
  }
  leader_from_workers  = { for name, rule in local.between : name => rule if rule.open == var.open_between_machines }
  worker_from_machines = { for name, rule in local.leader_from_workers : name => rule if rule.worker }
  leader_from_leaders  = { for name, rule in local.leader_from_workers : name => rule if rule.open }
}

resource "openstack_networking_secgroup_v2" "leader" {
  name        = "${var.cluster}-leader"
  description = "control plane of ${var.cluster}"
}

resource "openstack_networking_secgroup_v2" "worker" {
  name        = "${var.cluster}-worker"
  description = "workers of ${var.cluster}"
}

resource "openstack_networking_secgroup_rule_v2" "ssh" {
  for_each          = toset(var.admin_cidrs)
  security_group_id = openstack_networking_secgroup_v2.leader.id
  direction         = "ingress"
  ethertype         = can(regex(":", each.value)) ? "IPv6" : "IPv4"
  protocol          = "tcp"
  port_range_min    = 22
  port_range_max    = 22
  remote_ip_prefix  = each.value
}

resource "openstack_networking_secgroup_rule_v2" "leader_from_workers" {
  for_each          = local.leader_from_workers
  security_group_id = openstack_networking_secgroup_v2.leader.id
  direction         = "ingress"
  ethertype         = each.value.version
  protocol          = each.value.protocol
  port_range_min    = each.value.port
  port_range_max    = each.value.port
  remote_group_id   = openstack_networking_secgroup_v2.worker.id
}

resource "openstack_networking_secgroup_rule_v2" "worker_from_leader" {
  for_each          = local.worker_from_machines
  security_group_id = openstack_networking_secgroup_v2.worker.id
  direction         = "ingress"
  ethertype         = each.value.version
  protocol          = each.value.protocol
  port_range_min    = each.value.port
  port_range_max    = each.value.port
  remote_group_id   = openstack_networking_secgroup_v2.leader.id
}

resource "openstack_networking_secgroup_rule_v2" "worker_from_workers" {
  for_each          = local.worker_from_machines
  security_group_id = openstack_networking_secgroup_v2.worker.id
  direction         = "ingress"
  ethertype         = each.value.version
  protocol          = each.value.protocol
  port_range_min    = each.value.port
  port_range_max    = each.value.port
  remote_group_id   = openstack_networking_secgroup_v2.worker.id
}

resource "openstack_networking_secgroup_rule_v2" "leader_from_leaders" {
  for_each          = local.leader_from_leaders
  security_group_id = openstack_networking_secgroup_v2.leader.id
  direction         = "ingress"
  ethertype         = each.value.version
  protocol          = each.value.protocol
  port_range_min    = each.value.port
  port_range_max    = each.value.port
  remote_group_id   = openstack_networking_secgroup_v2.leader.id
}
