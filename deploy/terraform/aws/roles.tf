locals {
  # Nobody but EC2 may take these roles: the attested join rests on it.
  trust = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = "ec2.amazonaws.com" }
      Action    = "sts:AssumeRole"
    }]
  })
}

resource "aws_iam_role" "leader" {
  name               = "${var.cluster}-leader"
  assume_role_policy = local.trust
  tags               = local.tags
}

# What autoscaler-agent iam-policy leader --cluster prints; a test compares them.
resource "aws_iam_role_policy" "leader" {
  name   = "autoscaler-agent"
  role   = aws_iam_role.leader.name
  policy = templatefile("${path.module}/leader-policy.json.tftpl", { cluster = var.cluster, partition = local.partition })
}

resource "aws_iam_instance_profile" "leader" {
  name = "${var.cluster}-leader"
  role = aws_iam_role.leader.name
}

# Workers attest, and need no rights for that.
resource "aws_iam_role" "worker" {
  name               = "${var.cluster}-worker"
  assume_role_policy = local.trust
  tags               = local.tags
}

resource "aws_iam_role_policy_attachment" "worker_ecr" {
  count      = var.ecr_pull ? 1 : 0
  role       = aws_iam_role.worker.name
  policy_arn = "arn:${local.partition}:iam::aws:policy/AmazonEC2ContainerRegistryPullOnly"
}

resource "aws_iam_instance_profile" "worker" {
  name = "${var.cluster}-worker"
  role = aws_iam_role.worker.name
}
