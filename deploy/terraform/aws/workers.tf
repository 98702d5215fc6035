locals {
  # User data in base64, by group. A group without any is closed: it has no machine.
  user_data = { for name, group in var.groups : name =>
    group.user_data != null ? base64encode(group.user_data) :
    var.worker_user_data_file != null ? filebase64(var.worker_user_data_file) : null
  }

  # Groups whose machines are not all of one type, on demand
  mixed = { for name, group in var.groups : name => group.spot || length(group.instance_types) > 1 }

  # The tags by which the agent finds a group, and by which it knows what a new machine of
  # it offers; they stay with the group.
  group_tags = { for name, group in var.groups : name => merge(
    {
      "k8s.io/cluster-autoscaler/enabled"        = ""
      "k8s.io/cluster-autoscaler/${var.cluster}" = ""
    },
    { for key, value in group.labels : "k8s.io/cluster-autoscaler/node-template/label/${key}" => value },
    { for key, value in group.taints : "k8s.io/cluster-autoscaler/node-template/taint/${key}" => value },
    { for key, value in group.resources : "k8s.io/cluster-autoscaler/node-template/resources/${key}" => value },
  ) }
}

resource "aws_launch_template" "workers" {
  for_each               = var.groups
  name                   = "${var.cluster}-${each.key}"
  image_id               = local.image_ids[local.architecture[each.value.instance_types[0]]]
  instance_type          = each.value.instance_types[0]
  vpc_security_group_ids = [aws_security_group.worker.id]
  update_default_version = true
  tags                   = merge(local.tags, { Name = "${var.cluster}-${each.key}" })

  # Holds no secret when it was rendered with --attest.
  user_data = local.user_data[each.key]

  iam_instance_profile {
    name = aws_iam_instance_profile.worker.name
  }

  metadata_options {
    http_endpoint               = "enabled"
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
  }

  block_device_mappings {
    device_name = data.aws_ami.image[local.architecture[each.value.instance_types[0]]].root_device_name

    ebs {
      volume_size           = each.value.root_gib
      volume_type           = "gp3"
      encrypted             = "true"
      delete_on_termination = "true"
    }
  }

  dynamic "tag_specifications" {
    for_each = ["instance", "volume"]

    content {
      resource_type = tag_specifications.value
      tags          = merge(local.tags, { Name = "${var.cluster}-${each.key}" })
    }
  }

  lifecycle {
    precondition {
      condition     = length(distinct([for type in each.value.instance_types : local.architecture[type]])) == 1
      error_message = "The instance types of the group ${each.key} are of two architectures, and a group has one image: make two groups."
    }
  }
}

resource "aws_autoscaling_group" "workers" {
  for_each            = var.groups
  name                = "${var.cluster}-${each.key}"
  min_size            = local.user_data[each.key] == null ? 0 : each.value.min
  max_size            = local.user_data[each.key] == null ? 0 : each.value.max
  vpc_zone_identifier = each.value.subnet_ids != null ? each.value.subnet_ids : local.subnet_ids

  # AWS ends none of the machines by itself: the agent names each one that goes.
  protect_from_scale_in     = true
  suspended_processes       = ["AZRebalance"]
  wait_for_capacity_timeout = "0"

  dynamic "launch_template" {
    for_each = local.mixed[each.key] ? [] : [aws_launch_template.workers[each.key].id]

    content {
      id      = launch_template.value
      version = "$Latest"
    }
  }

  dynamic "mixed_instances_policy" {
    for_each = local.mixed[each.key] ? [aws_launch_template.workers[each.key].id] : []

    content {
      instances_distribution {
        on_demand_allocation_strategy            = "prioritized"
        on_demand_base_capacity                  = 0
        on_demand_percentage_above_base_capacity = each.value.spot ? 0 : 100
        spot_allocation_strategy                 = "price-capacity-optimized"
      }

      launch_template {
        launch_template_specification {
          launch_template_id = mixed_instances_policy.value
          version            = "$Latest"
        }

        dynamic "override" {
          for_each = each.value.instance_types

          content {
            instance_type = override.value
          }
        }
      }
    }
  }

  dynamic "tag" {
    for_each = local.group_tags[each.key]

    content {
      key                 = tag.key
      value               = tag.value
      propagate_at_launch = false
    }
  }

  dynamic "tag" {
    for_each = merge(local.tags, { Name = "${var.cluster}-${each.key}" })

    content {
      key                 = tag.key
      value               = tag.value
      propagate_at_launch = true
    }
  }

  lifecycle {
    # The desired capacity is the agent's.
    ignore_changes = [desired_capacity]
  }
}
