// Package openstack is shared by the providers of OpenStack: how an operator's
// credentials are found (clouds.yaml, the OS_* variables, an application credential,
// the cloud-config file of the Kubernetes cloud provider), a session that logs in when
// it is first used and again when its token runs out, and the translation of
// gophercloud's errors into the contract's kinds.
//
// It refuses to know any service but Keystone, to log in before the first
// request (a cloud that is down does not keep the agent from starting), to repeat a
// request that failed, and to let a password, a secret or a token into an error.
package openstack
