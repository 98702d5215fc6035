package asg

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/awsapi"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/lifecycle"
)

// failuresOf are the failures in one group's scaling activities.
type failuresOf struct {
	list []cluster.Failure
	err  error
}

// activitiesPerRead is how far back one read looks. AWS writes one activity per
// zone and attempt, a few each minute; older ones are no evidence of the present.
const activitiesPerRead = 30

const (
	// activitiesAtOnce is how many groups one read asks for their scaling activities, side by
	// side; activitiesAgain is how many of those a narrowed read (provider.WithOnly) has asked
	// about before, activitiesLife ago or longer.
	activitiesAtOnce = 8
	activitiesAgain  = 2
	activitiesLife   = 5 * time.Second
)

// launches keeps what was last read of the scaling activities of groups that lack machines.
type launches struct {
	mu      sync.Mutex
	byGroup map[cluster.GroupID]launchFact
}

type launchFact struct {
	failuresOf
	at time.Time
}

// readFailures asks for the scaling activities of those groups that have fewer machines
// than their desired capacity. The groups that were asked about the longest time ago come
// first; the last answer about the others holds on.
func (p *Provider) readFailures(ctx context.Context, readings []*reading) ([]failuresOf, []error) {
	due := p.launches.due(readings, p.now(), provider.Only(ctx) != nil)
	var turns sync.WaitGroup
	for _, r := range due {
		turns.Go(func() { p.launches.keep(r.group.ID, launchFact{p.readLaunches(ctx, r.group.ID), p.now()}) })
	}
	turns.Wait()
	out := make([]failuresOf, len(readings))
	var errs []error
	p.launches.mu.Lock()
	defer p.launches.mu.Unlock()
	for i, r := range readings {
		if short(r.source) {
			out[i] = p.launches.byGroup[r.group.ID].failuresOf
			out[i].list = slices.Clone(out[i].list)
		}
		if out[i].err != nil {
			errs = append(errs, out[i].err)
		}
	}
	return out, errs
}

// due are the groups to ask about. A group that lacks no machine any more is forgotten.
func (l *launches) due(readings []*reading, now time.Time, narrowed bool) []*reading {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out, again []*reading
	for _, r := range readings {
		known, ok := l.byGroup[r.group.ID]
		switch {
		case !short(r.source):
			delete(l.byGroup, r.group.ID)
		case !ok:
			out = append(out, r)
		case !narrowed || now.Sub(known.at) >= activitiesLife:
			again = append(again, r)
		}
	}
	slices.SortStableFunc(again, func(a, b *reading) int { return l.byGroup[a.group.ID].at.Compare(l.byGroup[b.group.ID].at) })
	if narrowed {
		again = again[:min(len(again), activitiesAgain)]
	}
	out = append(out, again...)
	return out[:min(len(out), activitiesAtOnce)]
}

func (l *launches) keep(id cluster.GroupID, f launchFact) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byGroup == nil {
		l.byGroup = map[cluster.GroupID]launchFact{}
	}
	l.byGroup[id] = f
}

// readLaunches asks for the scaling activities of one group.
func (p *Provider) readLaunches(ctx context.Context, id cluster.GroupID) failuresOf {
	answer, err := p.client.DescribeScalingActivities(ctx, &autoscaling.DescribeScalingActivitiesInput{
		AutoScalingGroupName: aws.String(string(id)),
		MaxRecords:           aws.Int32(activitiesPerRead),
	})
	if err != nil {
		e := awsapi.Classify("read", id, awsapi.ActionDescribeActivities, err)
		e.Err = fmt.Errorf("scaling activities: %w", e.Err)
		return failuresOf{err: e}
	}
	return failuresOf{list: failures(answer.Activities)}
}

func short(source asgtypes.AutoScalingGroup) bool {
	n := 0
	for _, m := range source.Instances {
		if lifecycle.Counted(m.LifecycleState) {
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
