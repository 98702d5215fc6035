data "aws_partition" "current" {}

data "aws_caller_identity" "current" {}

data "aws_vpc" "default" {
  count   = var.vpc_id == null ? 1 : 0
  default = true
}

data "aws_subnets" "all" {
  count = length(var.subnet_ids) == 0 ? 1 : 0

  filter {
    name   = "vpc-id"
    values = [local.vpc_id]
  }
}


locals {
  vpc_id     = var.vpc_id != null ? var.vpc_id : data.aws_vpc.default[0].id
  subnet_ids = length(var.subnet_ids) > 0 ? var.subnet_ids : sort(data.aws_subnets.all[0].ids)
  partition  = data.aws_partition.current.partition

  tags = merge(
    { "kubernetes.io/cluster/${var.cluster}" = "owned" },
    var.owner == null ? {} : { Owner = var.owner },
  )

  # The API server, the attest listener, kubelets, and the VXLAN of flannel or cilium; or everything.
  between = {
    api     = { protocol = "tcp", port = 6443, open = false, worker = false }
    attest  = { protocol = "tcp", port = 6444, open = false, worker = false }
    kubelet = { protocol = "tcp", port = 10250, open = false, worker = true }
    vxlan   = { protocol = "udp", port = 8472, open = false, worker = true }
    all     = { protocol = "-1", port = null, open = true, worker = true }
  }
  leader_from_workers  = { for name, rule in local.between : name => rule if rule.open == var.open_between_machines }
  worker_from_machines = { for name, rule in local.leader_from_workers : name => rule if rule.worker }
  leader_from_leaders  = { for name, rule in local.leader_from_workers : name => rule if rule.open }

  six = length([for cidr in var.admin_cidrs : cidr if can(regex(":", cidr))]) > 0
}

resource "aws_security_group" "leader" {
  name        = "${var.cluster}-leader"
  description = "control plane of ${var.cluster}"
  vpc_id      = local.vpc_id
  tags        = merge(local.tags, { Name = "${var.cluster}-leader" })
}

resource "aws_security_group" "worker" {
  name        = "${var.cluster}-worker"
  description = "workers of ${var.cluster}"
  vpc_id      = local.vpc_id
  tags        = merge(local.tags, { Name = "${var.cluster}-worker" })
}

resource "aws_vpc_security_group_egress_rule" "all" {
  for_each          = { leader = aws_security_group.leader.id, worker = aws_security_group.worker.id }
  security_group_id = each.value
  ip_protocol       = "-1"
  cidr_ipv4         = "0.0.0.0/0"
}

resource "aws_vpc_security_group_egress_rule" "all_ipv6" {
  for_each          = { leader = aws_security_group.leader.id, worker = aws_security_group.worker.id }
  security_group_id = each.value
  ip_protocol       = "-1"
  cidr_ipv6         = "::/0"
}

resource "aws_vpc_security_group_ingress_rule" "ssh" {
  for_each          = toset(var.admin_cidrs)
  security_group_id = aws_security_group.leader.id
  ip_protocol       = "tcp"
  from_port         = 22
  to_port           = 22
  cidr_ipv4         = can(regex(":", each.value)) ? null : each.value
  cidr_ipv6         = can(regex(":", each.value)) ? each.value : null
}

resource "aws_vpc_security_group_ingress_rule" "leader_from_leaders" {
  for_each                     = local.leader_from_leaders
  security_group_id            = aws_security_group.leader.id
  ip_protocol                  = each.value.protocol
  from_port                    = each.value.port
  to_port                      = each.value.port
  referenced_security_group_id = aws_security_group.leader.id
}

resource "aws_vpc_security_group_ingress_rule" "leader_from_workers" {
  for_each                     = local.leader_from_workers
  security_group_id            = aws_security_group.leader.id
  ip_protocol                  = each.value.protocol
  from_port                    = each.value.port
  to_port                      = each.value.port
  referenced_security_group_id = aws_security_group.worker.id
}

resource "aws_vpc_security_group_ingress_rule" "worker_from_leader" {
  for_each                     = local.worker_from_machines
  security_group_id            = aws_security_group.worker.id
  ip_protocol                  = each.value.protocol
  from_port                    = each.value.port
  to_port                      = each.value.port
  referenced_security_group_id = aws_security_group.leader.id
}

resource "aws_vpc_security_group_ingress_rule" "worker_from_workers" {
  for_each                     = local.worker_from_machines
  security_group_id            = aws_security_group.worker.id
  ip_protocol                  = each.value.protocol
  from_port                    = each.value.port
  to_port                      = each.value.port
  referenced_security_group_id = aws_security_group.worker.id
}
