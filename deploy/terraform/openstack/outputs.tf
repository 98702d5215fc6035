output "leader" {
  description = "Address to which SSH goes."
  value       = var.external_network == null ? openstack_networking_port_v2.leader.all_fixed_ips[0] : openstack_networking_floatingip_v2.leader[0].address
}

output "endpoint" {
  description = "Address of the control plane inside the network; it stays when the leader is made anew."
  value       = openstack_networking_port_v2.leader.all_fixed_ips[0]
}

output "groups_yaml" {
  description = "/etc/autoscaler-agent/groups.yaml"
  value = yamlencode({
    nova = {
      cluster = var.cluster
      groups = [for name, group in var.groups : {
        name           = "${var.cluster}-${name}"
        min            = group.min
        max            = group.max
        flavor         = group.flavors
        image          = var.image
        networks       = [var.network]
        securityGroups = [openstack_networking_secgroup_v2.worker.name]
        key            = openstack_compute_keypair_v2.admin.name
        userdata       = "/etc/autoscaler-agent/worker.sh"
      }]
    }
  })
}

output "clouds_yaml" {
  description = "/etc/autoscaler-agent/clouds.yaml"
  sensitive   = true
  value = yamlencode({
    clouds = {
      (var.cluster) = {
        auth_type   = "v3applicationcredential"
        region_name = var.region
        auth = {
          auth_url                      = var.auth_url
          application_credential_id     = openstack_identity_application_credential_v3.agent.id
          application_credential_secret = openstack_identity_application_credential_v3.agent.secret
        }
      }
    }
  })
}
