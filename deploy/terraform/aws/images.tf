data "aws_ec2_instance_type" "all" {
  for_each      = toset(concat([var.leader.instance_type], flatten([for group in var.groups : group.instance_types])))
  instance_type = each.value
}

locals {
  # amd64 or arm64, by instance type
  architecture = { for name, type in data.aws_ec2_instance_type.all :
  name => contains(type.supported_architectures, "arm64") ? "arm64" : "amd64" }

  # The architectures whose image nobody gave
  found = toset([for name in distinct(values(local.architecture)) : name if !contains(keys(var.image_ids), name)])

  # The image of each architecture: the one that was given, or the one that Terraform's state keeps.
  image_ids = merge({ for architecture, image in terraform_data.image : architecture => image.output }, var.image_ids)
}

data "aws_ssm_parameter" "image" {
  for_each = local.found
  name     = "/aws/service/canonical/ubuntu/server/24.04/stable/current/${each.value}/hvm/ebs-gp3/ami-id"
}

# The newest image of Ubuntu 24.04 at the first apply. It stays: a new image replaces no machine that nobody asked about.
# terraform apply -replace='terraform_data.image["amd64"]' takes the newest.
resource "terraform_data" "image" {
  for_each = local.found
  input    = nonsensitive(data.aws_ssm_parameter.image[each.value].value)

  lifecycle {
    ignore_changes = [input]
  }
}

data "aws_ami" "image" {
  for_each = toset(distinct(values(local.architecture)))

  filter {
    name   = "image-id"
    values = [local.image_ids[each.value]]
  }
}
