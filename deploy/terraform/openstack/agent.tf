# What autoscaler-agent openstack-rules prints; a test compares them.
locals {
  rules = jsondecode(file("${path.module}/access-rules.json"))
}

resource "openstack_identity_application_credential_v3" "agent" {
  name        = "${var.cluster}-autoscaler-agent"
  description = "autoscaler-agent of ${var.cluster}"
  roles       = [var.role]

  dynamic "access_rules" {
    for_each = var.access_rules ? local.rules : []

    content {
      service = access_rules.value.service
      method  = access_rules.value.method
      path    = access_rules.value.path
    }
  }
}
