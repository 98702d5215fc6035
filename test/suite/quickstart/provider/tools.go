//go:build tools

// Package provider pins the version of Terraform's OpenStack provider that the tests of
// package quickstart build. Its own go.mod keeps the provider out of every other one.
package provider

import _ "github.com/terraform-provider-openstack/terraform-provider-openstack/v3"
