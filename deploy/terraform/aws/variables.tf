variable "cluster" {
  description = "Name of the cluster: small letters, digits and dashes. All names begin with it."
  type        = string

  validation {
    condition     = can(regex("^[a-z0-9-]+$", var.cluster))
    error_message = "The cluster's name has small letters, digits and dashes only."
  }
}

variable "admin_cidrs" {
  description = "Networks from which SSH reaches the leader, as 203.0.113.7/32."
  type        = list(string)
}

variable "ssh_public_key" {
  description = "Public SSH key for the leader, as it stands in its file. RSA and ed25519 both work."
  type        = string
}

variable "owner" {
  description = "Value of the tag Owner of everything; null for no such tag."
  type        = string
  default     = null
}

variable "vpc_id" {
  description = "VPC of the machines; null for the region's default VPC."
  type        = string
  default     = null
}

variable "subnet_ids" {
  description = "Subnets of the machines, the leader in the first; empty for all of the VPC. They need a way to the internet, or the mirrors of userdata render."
  type        = list(string)
  default     = []
}

variable "image_id" {
  description = "Image (AMI) of all machines; null for the newest of Ubuntu 24.04: workers get it at the next apply, the leader keeps its own."
  type        = string
  default     = null
}

variable "leader" {
  description = "The leader's instance type and root volume."
  type = object({
    instance_type = optional(string, "t3.large")
    root_gib      = optional(number, 32)
  })
  default = {}
}

variable "groups" {
  description = "Worker groups by name. A group that has volumes belongs into one subnet. Labels, taints and resources are tags by which the agent knows what a new machine of the group offers: give userdata render the same labels and taints."
  type = map(object({
    instance_type = optional(string, "t3.large")
    root_gib      = optional(number, 32)
    min           = optional(number, 0)
    max           = optional(number, 10)
    subnet_ids    = optional(list(string))
    user_data     = optional(string)
    labels        = optional(map(string), {})
    taints        = optional(map(string), {})
    resources     = optional(map(string), {})
  }))
  default = { workers = {} }
}

variable "worker_user_data_file" {
  description = "File that autoscaler-agent userdata render wrote. Without it, before there is a leader to render it, the groups are closed."
  type        = string
  default     = null
}

variable "ecr_pull" {
  description = "Whether workers may pull images of the account's ECR registries (the kubelet's credential provider for ECR is the image's or a hook's matter)."
  type        = bool
  default     = true
}
