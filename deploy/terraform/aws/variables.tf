variable "cluster" {
  description = "Name of the cluster: small letters, digits and dashes. All names begin with it."
  type        = string

  validation {
    condition     = can(regex("^[a-z0-9-]+$", var.cluster))
    error_message = "The cluster's name has small letters, digits and dashes only."
  }
}

variable "admin_cidrs" {
  description = "Networks from which SSH reaches the leader, as 203.0.113.7/32 or 2001:db8::/64. With one of IPv6 the leader gets an address of IPv6, which its subnet has to have."
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

variable "image_ids" {
  description = "Images (AMI) by architecture, amd64 and arm64. Of one that is not here it is the Ubuntu 24.04 that was the newest at the first apply; the leader keeps its own."
  type        = map(string)
  default     = {}

  validation {
    condition     = length([for name in keys(var.image_ids) : name if name != "amd64" && name != "arm64"]) == 0
    error_message = "The architectures of image_ids are amd64 and arm64."
  }
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
  description = "Worker groups by name. Several instance types, the preferred one first, or spot make it a group of mixed instances; its types are of one architecture. A group that has volumes belongs into one subnet. Labels, taints and resources are tags by which the agent knows what a new machine of the group offers: give userdata render the same labels and taints."
  type = map(object({
    instance_types = optional(list(string), ["t3.large"])
    spot           = optional(bool, false)
    root_gib       = optional(number, 32)
    min            = optional(number, 0)
    max            = optional(number, 10)
    subnet_ids     = optional(list(string))
    user_data      = optional(string)
    labels         = optional(map(string), {})
    taints         = optional(map(string), {})
    resources      = optional(map(string), {})
  }))
  default = { workers = {} }
}

variable "worker_user_data_file" {
  description = "File that autoscaler-agent userdata render wrote. Without it, before there is a leader to render it, the groups are closed."
  type        = string
  default     = null
}

variable "ecr_pull" {
  description = "Whether workers may pull images of the account's ECR registries (userdata render --ecr-credential-provider installs the program for it)."
  type        = bool
  default     = true
}

variable "open_between_machines" {
  description = "Whether the machines reach every port of one another, for host networks, NodePorts and Cilium's health checks, and not the API server, kubelets and VXLAN alone."
  type        = bool
  default     = false
}
