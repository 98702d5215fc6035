// Package aws is an AWS that fits into a test: EC2, EC2 Auto Scaling, SSM
// parameters, STS, IAM's roles and the instance metadata service, on one loopback port,
// speaking the wire protocols that the real services speak to the real SDKs
// and to the aws command (EC2 query, AWS query, JSON 1.1, IMDSv2), with
// Signature Version 4 verified for real.
//
// What is emulated: launch templates and their versions; Auto Scaling groups
// with bounds, tags, zones, mixed instances, suspended processes, scale-in
// protection, standby, lifecycle hooks and scaling activities; instances that
// take time to come and go, have addresses, tags and user data, and stay
// visible for a while after they are terminated; capacity and quota that run
// out; credentials that expire; reads that lag behind writes; and the faults
// of a network (see Fault). Everything random comes from Options.Seed.
//
// Warm pools, spot interruptions and instance refreshes are what a test sets
// them to (Warm, Interrupt, InstanceRefresh); nothing of them runs by itself.
//
// IAM's roles and profiles, key pairs, security groups, network interfaces and Elastic IP
// addresses can be made and read (Account), and RunInstances starts a machine with such an
// interface. None of them lets anybody in or keeps anybody out.
//
// What is not emulated: AZRebalance and CapacityRebalance (they can be switched
// but never run), load balancers, scaling policies, launch configurations, EBS volumes, the effect of IAM policies
// (use Fault with Forbidden instead).
//
// Where it is simpler than AWS: one VPC 10.0.0.0/16 with a subnet per zone and
// one network interface per instance; every image exists until RemoveImage;
// health checks look at the EC2 state only and heed no grace period; the
// hop limit of the metadata service is shown and not enforced; a group counts
// weighted capacity, but an override's weight is not checked against others.
// EC2 answers a wrong secret with AuthFailure, as the real one does, where the
// other services say SignatureDoesNotMatch or InvalidSignatureException.
//
// What it refuses: an action that it does not know is answered as AWS answers
// one that does not exist (InvalidAction, or UnknownOperationException for
// JSON). A parameter that AWS knows and this package does not emulate is
// refused with UnsupportedOperation, never ignored, so that a test cannot pass
// because a wish was dropped on the floor. It listens on 127.0.0.1 only and
// never dials anybody: the addresses of its instances exist in answers only.
//
// The package boots no machines. Options.OnLaunch and Options.OnState tell
// whoever does (see package test/emulate/machine) what the cloud has done.
package aws
