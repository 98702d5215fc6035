# A group and the leader's policy in a module of your own. Without ignore_changes each `terraform apply`
# sets the size back.
data "external" "policy" {
  program = ["sh", "-c", "autoscaler-agent iam-policy leader --cluster mycluster | jq '{json: tojson}'"]
}

resource "aws_iam_role_policy" "leader" {
  name   = "autoscaler-agent"
  role   = aws_iam_role.leader.name
  policy = data.external.policy.result.json
}

resource "aws_autoscaling_group" "workers" {
  name                  = "workers"
  min_size              = 0
  max_size              = 20
  vpc_zone_identifier   = var.subnets
  protect_from_scale_in = true
  suspended_processes   = ["AZRebalance"]

  launch_template {
    id      = aws_launch_template.worker.id
    version = "$Latest"
  }

  dynamic "tag" {
    for_each = ["k8s.io/cluster-autoscaler/enabled", "k8s.io/cluster-autoscaler/mycluster"]
    content {
      key                 = tag.value
      value               = "owned"
      propagate_at_launch = false
    }
  }

  lifecycle {
    ignore_changes = [desired_capacity] # the agent sets it
  }
}
