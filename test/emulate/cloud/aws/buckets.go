package aws

import (
	"maps"
	"time"
)

// bucket is one token bucket: a call takes a token, and one without a token is throttled.
type bucket struct {
	most, rate float64 // tokens, and tokens a second
	tokens     float64
	at         time.Time
}

// ec2Buckets are EC2's own buckets of single actions, as "Request throttling for the Amazon
// EC2 API" of its developer guide lists them; each action has its own, per account and region.
var ec2Buckets = map[string]bucket{
	"RunInstances":                 {most: 5, rate: 2},
	"TerminateInstances":           {most: 100, rate: 5},
	"CreateTags":                   {most: 100, rate: 10},
	"CreateLaunchTemplate":         {most: 100, rate: 5},
	"CreateLaunchTemplateVersion":  {most: 100, rate: 5},
	"DescribeSpotInstanceRequests": {most: 100, rate: 5},
}

// bucketFor is the full bucket of an action. EC2's are its categories of that page: actions
// that read, with a filter, IDs or pages, and without; actions that write. Auto Scaling's
// limits are not published: 20 tokens and 5 a second are an assumption.
func bucketFor(service, action string, write, bare bool) bucket {
	b, own := ec2Buckets[action]
	switch {
	case service != "ec2":
		b = bucket{most: 20, rate: 5}
	case own:
	case write:
		b = bucket{most: 50, rate: 5}
	case bare:
		b = bucket{most: 50, rate: 10}
	default:
		b = bucket{most: 100, rate: 20}
	}
	b.tokens, b.at = b.most, time.Now()
	return b
}

// overdrawn takes a token for a call, and tells whether there was none. The caller holds c.mu.
func (c *Cloud) overdrawn(in incoming, write bool) bool {
	if !c.opts.Buckets {
		return false
	}
	bare := true
	for name := range in.form {
		bare = bare && (name == "Action" || name == "Version")
	}
	name := in.service + ":" + in.action
	if bare && !write {
		name += " of everything"
	}
	b, ok := c.buckets[name]
	if !ok {
		full := bucketFor(in.service, in.action, write, bare)
		b = &full
		c.buckets[name] = b
	}
	now := time.Now()
	b.tokens, b.at = min(b.most, b.tokens+now.Sub(b.at).Seconds()*b.rate), now
	if b.tokens < 1 {
		c.throttled[in.service+":"+in.action]++
		return true
	}
	b.tokens--
	return false
}

// Throttled tells how often each "service:Action" was throttled by its token bucket since the
// start (Options.Buckets).
func (c *Cloud) Throttled() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.throttled)
}
