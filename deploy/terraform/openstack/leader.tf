resource "openstack_compute_keypair_v2" "admin" {
  name       = var.cluster
  public_key = var.ssh_public_key
}

# The port outlives the server: a leader that is made anew keeps the address that the API
# server's certificate and every kubelet name.
resource "openstack_networking_port_v2" "leader" {
  name               = "${var.cluster}-leader"
  network_id         = data.openstack_networking_network_v2.machines.id
  security_group_ids = [openstack_networking_secgroup_v2.leader.id]
}

resource "openstack_networking_floatingip_v2" "leader" {
  count   = var.external_network == null ? 0 : 1
  pool    = var.external_network
  port_id = openstack_networking_port_v2.leader.id
}

resource "openstack_compute_instance_v2" "leader" {
  name      = "${var.cluster}-leader"
  image_id  = data.openstack_images_image_v2.image.id
  flavor_id = data.openstack_compute_flavor_v2.leader.id
  key_pair  = openstack_compute_keypair_v2.admin.name

  network {
    port = openstack_networking_port_v2.leader.id
  }

  lifecycle {
    # A newer image must not replace a control plane.
    ignore_changes = [image_id]
  }
}
