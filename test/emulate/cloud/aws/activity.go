package aws

import (
	"fmt"
	"time"
)

// Activity is one scaling activity.
type Activity struct {
	ID, Group          string
	Description, Cause string
	Start, End         time.Time // End is zero while it runs
	Status             string    // InProgress, Successful, Failed, Cancelled, MidLifecycleAction, PreInService
	Message            string    // why it failed
	Progress           int
	Zone               string
	InstanceID         string // "" for a failed launch
}

type activity struct {
	Activity
	details string
}

// maxActivities bounds the log; AWS keeps six weeks.
const maxActivities = 2000

// begin notes an activity. The caller holds c.mu.
func (c *Cloud) begin(g *group, zone, id, description, cause string) *activity {
	a := &activity{Activity: Activity{
		ID: c.uuid(), Group: g.name, Description: description, Cause: cause,
		Start: time.Now(), Status: "InProgress", Progress: 30, Zone: zone, InstanceID: id,
	}}
	a.details = fmt.Sprintf(`{"Subnet ID":"%s","Availability Zone":"%s"}`, c.Subnet(zone), zone)
	c.world.activities = append(c.world.activities, a)
	if n := len(c.world.activities); n > maxActivities {
		c.world.activities = append([]*activity(nil), c.world.activities[n-maxActivities:]...)
	}
	return a
}

// end finishes an activity, unless it already is.
func (a *activity) end(status, message string) {
	if a == nil || !a.End.IsZero() {
		return
	}
	a.Status, a.Message, a.End = status, message, time.Now()
	if a.Progress = 100; status == "Cancelled" {
		a.Progress = 50
	}
}

// running finds the activity of a group that is under way for an instance;
// with "" for any. The newest wins.
func (w *world) running(groupName, instanceID string) *activity {
	for i := len(w.activities) - 1; i >= 0; i-- {
		a := w.activities[i]
		if a.Group == groupName && a.End.IsZero() && (instanceID == "" || a.InstanceID == instanceID) {
			return a
		}
	}
	return nil
}

func (a *activity) elements() []el {
	e := []el{
		x("ActivityId", a.ID),
		x("AutoScalingGroupName", a.Group),
		x("Description", a.Description),
		x("Cause", a.Cause),
		x("StartTime", a.Start),
	}
	if !a.End.IsZero() {
		// Whole seconds, unlike StartTime: a short activity seems to end
		// before it began (kubernetes/autoscaler issue 1263 shows one).
		e = append(e, x("EndTime", brief(a.End)))
	}
	return append(e,
		x("StatusCode", a.Status),
		opt("StatusMessage", a.Message),
		x("Progress", a.Progress),
		x("Details", a.details))
}
