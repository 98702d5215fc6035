output "leader" {
  description = "Address to which SSH goes."
  value       = aws_eip.leader.public_ip
}

output "leader_ipv6" {
  description = "Address of IPv6 to which SSH goes, with an admin network of IPv6."
  value       = local.six ? aws_network_interface.leader.ipv6_addresses : []
}

output "endpoint" {
  description = "Address of the control plane inside the VPC; it stays when the leader is made anew."
  value       = aws_network_interface.leader.private_ip
}

output "account" {
  description = "AUTOSCALER_BOOTSTRAP_ATTEST_ACCOUNT"
  value       = data.aws_caller_identity.current.account_id
}

output "role" {
  description = "AUTOSCALER_BOOTSTRAP_ATTEST_ROLES"
  value       = aws_iam_role.worker.name
}

output "groups" {
  description = "Names of the Auto Scaling groups."
  value       = [for group in aws_autoscaling_group.workers : group.name]
}
