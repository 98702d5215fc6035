package asg

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// TestCauses uses AWS's own sentences, as its troubleshooting page and reports of
// users show them.
func TestCauses(t *testing.T) {
	for text, want := range map[string]cluster.Cause{
		"We currently do not have sufficient c5.large capacity in the Availability Zone you requested (us-east-1a). Our system will be working on provisioning additional capacity. Launching EC2 instance failed.": cluster.CauseCapacity,
		"Could not launch On-Demand Instances. InsufficientInstanceCapacity - There is no Spot capacity available that matches your request. Launching EC2 instance failed.":                                        cluster.CauseCapacity,
		"Could not launch Spot Instances. UnfulfillableCapacity - Unable to fulfill capacity due to your request configuration. Launching EC2 instance failed.":                                                     cluster.CauseCapacity,
		"There are not enough free addresses in subnet 'subnet-1' to satisfy the requested number of instances. Launching EC2 instance failed.":                                                                     cluster.CauseCapacity,
		"You have requested more vCPU capacity than your current vCPU limit of 32 allows for the instance bucket that the specified instance type belongs to. Launching EC2 instance failed.":                       cluster.CauseQuota,
		"Could not launch Spot Instances. MaxSpotInstanceCountExceeded - Max spot instance count exceeded. Launching EC2 instance failed.":                                                                          cluster.CauseQuota,
		"You have requested more instances (21) than your current instance limit of 20 allows for the specified instance type. Launching EC2 instance failed.":                                                      cluster.CauseQuota,
		"The image id '[ami-1]' does not exist. Launching EC2 instance failed.":                                                                                                                                     cluster.CauseInvalid,
		"The security group 'sg-1' does not exist. Launching EC2 instance failed.":                                                                                                                                  cluster.CauseInvalid,
		"The key pair 'x' does not exist. Launching EC2 instance failed.":                                                                                                                                           cluster.CauseInvalid,
		"Invalid IAM Instance Profile name. Launching EC2 instance failed.":                                                                                                                                         cluster.CauseInvalid,
		"Your requested instance type (m9.large) is not supported in your requested Availability Zone (us-east-1e). Launching EC2 instance failed.":                                                                 cluster.CauseInvalid,
		"Access denied when attempting to assume role arn:aws:iam::1:role/x. Validating load balancer configuration failed.":                                                                                        cluster.CauseInvalid,
		"Instance became unhealthy while waiting for instance to be in InService state. Termination Reason: Client.InternalError: Client error on launch":                                                           cluster.CauseInvalid,
		"Something nobody has seen yet.": cluster.CauseOther,
	} {
		if got := cause(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestFailuresSinceTheLastSuccess(t *testing.T) {
	at := func(s int64) *time.Time { return aws.Time(time.Unix(s, 0)) }
	activity := func(id, description string, status asgtypes.ScalingActivityStatusCode, start int64, message string) asgtypes.Activity {
		return asgtypes.Activity{ActivityId: &id, Description: &description, StatusCode: status, StartTime: at(start), EndTime: at(start + 1), StatusMessage: &message}
	}
	const capacity = "We currently do not have sufficient m5.large capacity in the Availability Zone you requested (eu-west-1b)."
	list := []asgtypes.Activity{
		activity("1", "Launching a new EC2 instance: i-9", "InProgress", 100, ""),
		activity("5", "Launching a new EC2 instance.  Status Reason: x", "Failed", 60, capacity),
		activity("4", "Terminating EC2 instance: i-1", "Successful", 70, ""),
		activity("6", "Launching a new EC2 instance.  Status Reason: x", "Failed", 80, "You have exceeded your VcpuLimitExceeded"),
		activity("6", "Launching a new EC2 instance.  Status Reason: x", "Failed", 80, "the same again"),
		activity("7", "Terminating EC2 instance", "Failed", 90, "Could not scale to desired capacity"),
		activity("3", "Launching a new EC2 instance: i-2", "Successful", 50, ""),
		activity("2", "Launching a new EC2 instance.  Status Reason: x", "Failed", 40, "old news"),
	}
	got := failures(list)
	if len(got) != 2 || got[0].Cause != cluster.CauseQuota || got[1].Cause != cluster.CauseCapacity || got[1].Zone != "eu-west-1b" || !got[1].At.Equal(*at(61)) {
		t.Errorf("%+v", got)
	}
	list[1].Details = aws.String(`{"Subnet ID":"subnet-1","Availability Zone":"eu-west-1c"}`)
	if got := failures(list); got[1].Zone != "eu-west-1c" {
		t.Errorf("zone %q", got[1].Zone)
	}
}
