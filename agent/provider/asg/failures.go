package asg

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/awsapi"
)

// failuresOf are the failures in one group's scaling activities.
type failuresOf struct {
	list []cluster.Failure
	err  error
}

// activitiesPerRead is how far back one read looks. AWS writes one activity per
// zone and attempt, a few each minute; older ones are no evidence of the present.
const activitiesPerRead = 30

// readFailures asks for the scaling activities of those groups that have fewer
// machines than their desired capacity.
func (p *Provider) readFailures(ctx context.Context, readings []*reading) ([]failuresOf, []error) {
	out := make([]failuresOf, len(readings))
	var errs []error
	for i, r := range readings {
		if !short(r.source) {
			continue
		}
		answer, err := p.client.DescribeScalingActivities(ctx, &autoscaling.DescribeScalingActivitiesInput{
			AutoScalingGroupName: r.source.AutoScalingGroupName,
			MaxRecords:           aws.Int32(activitiesPerRead),
		})
		if err != nil {
			e := awsapi.Classify("read", cluster.GroupID(aws.ToString(r.source.AutoScalingGroupName)), awsapi.ActionDescribeActivities, err)
			e.Err = fmt.Errorf("scaling activities: %w", e.Err)
			out[i].err = e
			errs = append(errs, e)
			continue
		}
		out[i].list = failures(answer.Activities)
	}
	return out, errs
}

func short(source asgtypes.AutoScalingGroup) bool {
	n := 0
	for _, m := range source.Instances {
		if counted(m.LifecycleState) {
			n++
		}
	}
	return n < int(aws.ToInt32(source.DesiredCapacity))
}

// failures are the launches that failed since the last one that went well, newest
// first.
func failures(activities []asgtypes.Activity) []cluster.Failure {
	list := slices.Clone(activities)
	slices.SortStableFunc(list, func(a, b asgtypes.Activity) int {
		return aws.ToTime(b.StartTime).Compare(aws.ToTime(a.StartTime))
	})
	var out []cluster.Failure
	seen := map[string]bool{}
	for _, a := range list {
		if !launch(a) {
			continue
		}
		if a.StatusCode == asgtypes.ScalingActivityStatusCodeSuccessful {
			break
		}
		id := aws.ToString(a.ActivityId)
		if a.StatusCode != asgtypes.ScalingActivityStatusCodeFailed || id != "" && seen[id] {
			continue
		}
		seen[id] = true
		text := aws.ToString(a.StatusMessage)
		f := cluster.Failure{Cause: cause(text), Text: text, Zone: zoneOf(a), At: aws.ToTime(a.EndTime)}
		if f.At.IsZero() {
			f.At = aws.ToTime(a.StartTime)
		}
		out = append(out, f)
	}
	slices.SortStableFunc(out, func(a, b cluster.Failure) int { return b.At.Compare(a.At) })
	return out
}

// launch reports whether an activity starts a machine, rather than ends, attaches or moves
// one. AWS marks it only by its description.
func launch(a asgtypes.Activity) bool {
	return strings.HasPrefix(aws.ToString(a.Description), "Launching")
}

// causes are AWS's words for a failed launch. Auto Scaling gives EC2's code for
// some and only EC2's sentence for others; both are looked for, in lower case.
// Sources: "Troubleshoot Amazon EC2 Auto Scaling: EC2 instance launch failures",
// EC2's list of error codes.
var causes = []struct {
	cause cluster.Cause
	words []string
}{
	{cluster.CauseQuota, []string{
		"instancelimitexceeded", "vcpulimitexceeded", "maxspotinstancecountexceeded", "max spot instance count exceeded",
		"more vcpu capacity than your current vcpu limit", "your quota allows for", "current instance limit",
		"volumelimitexceeded", "maxiopslimitexceeded", "maximum number of", "limit exceeded",
	}},
	{cluster.CauseCapacity, []string{
		"insufficientinstancecapacity", "insufficient capacity", "do not have sufficient", "insufficienthostcapacity",
		"insufficientreservedinstancecapacity", "reservationcapacityexceeded", "insufficientcapacityoncapacityblock",
		"unfulfillablecapacity", "no spot capacity", "spotmaxpricetoolow", "insufficientfreeaddressesinsubnet",
		"not enough free addresses", "could not launch spot instances. unfulfillable",
	}},
	{cluster.CauseInvalid, []string{
		"does not exist", "notfound", "not found", "invalid", "unauthorizedoperation", "not authorized", "access denied",
		"client error on launch", "client.internalerror", "unsupported", "not supported", "no longer available",
		"must be enabled", "malformed", "you must use a valid", "must first accept", "optinrequired", "pendingverification",
		"incompatible", "cannot be used", "is not valid",
	}},
}

func cause(text string) cluster.Cause {
	text = strings.ToLower(text)
	for _, c := range causes {
		for _, w := range c.words {
			if strings.Contains(text, w) {
				return c.cause
			}
		}
	}
	return cluster.CauseOther
}

var zoneInText = regexp.MustCompile(`\(([a-z]{2,3}(?:-[a-z]+)+-[0-9]+[a-z])\)`)

// zoneOf finds the zone in the activity's details (JSON) or in its text.
func zoneOf(a asgtypes.Activity) string {
	var details struct {
		Zone string `json:"Availability Zone"`
	}
	if json.Unmarshal([]byte(aws.ToString(a.Details)), &details) == nil && details.Zone != "" {
		return details.Zone
	}
	if m := zoneInText.FindStringSubmatch(aws.ToString(a.StatusMessage)); m != nil {
		return m[1]
	}
	return ""
}
