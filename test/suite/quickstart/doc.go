// Package quickstart tests what a person types to get from an empty account to a cluster
// that scales itself: the scripts and Terraform modules of deploy/ and the pages
// docs/quickstart-aws.md and docs/quickstart-openstack.md. It has tests only.
//
// It refuses to call anything executed that was only parsed: README.md says which.
package quickstart
