variable "cluster" {
  description = "Name of the cluster: small letters, digits and dashes. All names begin with it."
  type        = string

  validation {
    condition     = can(regex("^[a-z0-9-]+$", var.cluster))
    error_message = "The cluster's name has small letters, digits and dashes only."
  }
}

variable "auth_url" {
  description = "Address of Keystone, as in OS_AUTH_URL; it is written into clouds_yaml."
  type        = string
}

variable "region" {
  description = "Region, as in OS_REGION_NAME."
  type        = string
  default     = "RegionOne"
}

variable "admin_cidrs" {
  description = "Networks from which SSH reaches the leader, as 203.0.113.7/32."
  type        = list(string)
}

variable "ssh_public_key" {
  description = "Public SSH key of all machines, as it stands in its file."
  type        = string
}

variable "network" {
  description = "Name of the network of the machines."
  type        = string
}

variable "external_network" {
  description = "Name of the network of floating IPs; null for a leader without one."
  type        = string
  default     = null
}

variable "image" {
  description = "Name of the image of all machines."
  type        = string
  default     = "ubuntu-24.04"
}

variable "leader_flavor" {
  description = "Flavor of the leader: two processors and 4 GiB of memory at least."
  type        = string
}

variable "groups" {
  description = "Worker groups by name."
  type = map(object({
    flavors = list(string)
    min     = optional(number, 0)
    max     = optional(number, 10)
  }))
}

variable "role" {
  description = "Role of the agent's application credential: one that may make servers and ports."
  type        = string
  default     = "member"
}

variable "access_rules" {
  description = "Whether the credential is held to the agent's own calls. Switch it off where Nova asks Neutron and Glance without a service token (send_service_user_token)."
  type        = bool
  default     = true
}

variable "open_between_machines" {
  description = "Whether the machines reach every port of one another, for host networks, NodePorts and Cilium's health checks, and not the API server, kubelets and VXLAN alone."
  type        = bool
  default     = false
}
