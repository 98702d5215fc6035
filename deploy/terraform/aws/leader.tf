resource "aws_key_pair" "admin" {
  key_name   = var.cluster
  public_key = var.ssh_public_key
  tags       = local.tags
}

# The interface outlives the instance: a leader that is made anew keeps the address that
# the API server's certificate and every kubelet name.
resource "aws_network_interface" "leader" {
  subnet_id          = local.subnet_ids[0]
  security_groups    = [aws_security_group.leader.id]
  ipv6_address_count = local.six ? 1 : null
  tags               = merge(local.tags, { Name = "${var.cluster}-leader" })
}

resource "aws_eip" "leader" {
  domain            = "vpc"
  network_interface = aws_network_interface.leader.id
  tags              = merge(local.tags, { Name = "${var.cluster}-leader" })
}

resource "aws_instance" "leader" {
  ami                  = local.image_ids[local.architecture[var.leader.instance_type]]
  instance_type        = var.leader.instance_type
  key_name             = aws_key_pair.admin.key_name
  iam_instance_profile = aws_iam_instance_profile.leader.name
  tags                 = merge(local.tags, { Name = "${var.cluster}-leader" })
  volume_tags          = merge(local.tags, { Name = "${var.cluster}-leader" })

  network_interface {
    device_index         = 0
    network_interface_id = aws_network_interface.leader.id
  }

  root_block_device {
    volume_size           = var.leader.root_gib
    volume_type           = "gp3"
    encrypted             = true
    delete_on_termination = true
  }

  metadata_options {
    http_endpoint               = "enabled"
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
  }

  lifecycle {
    # A newer image must not replace a control plane.
    ignore_changes = [ami]
  }
}
