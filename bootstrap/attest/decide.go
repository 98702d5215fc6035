package attest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// Verdict is the answer to one request.
type Verdict struct {
	// Rule is the one that objects; empty: the machine gets its token.
	Rule string
	Why  string
	// Later tells that the objection heals with time: the machine is to try again.
	Later bool
}

// Check is one rule, for the docs, `explain` and the journal catalog. Remedy is what an operator does; empty: nothing.
type Check struct{ Rule, Must, Remedy string }

// Checks are all rules in the order in which they are asked.
var Checks = []Check{
	{"A0", "this agent leads, and the source and the listener have allowance left", ""},
	{"A1", "the request has the fixed form: seven signed headers, this region's STS, sound values, at most 8 KiB", "The request has not the fixed form: look what posts it. Render the user data anew after an upgrade."},
	{"A2", "the challenge is this listener's, at most a minute old, and was never used", ""},
	{"A3", "the request was signed for this cluster (hash of one of its CAs)", "The machine was rendered for another cluster: render its user data anew."},
	{"A4", "the machine's clock is right to five minutes", "Look at the machine's clock."},
	{"A5", "STS confirms the signature, over challenge, cluster and key", "STS refused the signature: look at the clock and the region of the machine, and what posts the request."},
	{"A6", "the caller is of the workers' account", "The caller is of another AWS account: correct AUTOSCALER_BOOTSTRAP_ATTEST_ACCOUNT, or treat it as an intruder."},
	{"A7", "the caller is one of the workers' roles", "Name the workers' role in AUTOSCALER_BOOTSTRAP_ATTEST_ROLES, if it is one of theirs."},
	{"A8", "the session is that of an EC2 instance", "Only a machine's own role session counts: look who may assume the workers' role."},
	{"A9", "what the cloud says was read lately", "The cloud was not read lately: see autoscaler-agent check."},
	{"A10", "a managed group has the instance, and waits for it to join", "The instance is in no managed group: look at the group's tags and at its members."},
	{"A11", "the instance was launched within the window", "Replace the machine: it did not attest in its first minutes."},
	{"A12", "the instance has not joined: no Node is its own, and no other key has a certificate for it", "The instance has joined. Replace the machine, or autoscaler-agent token create --instance ID."},
	{"A13", "the instance was attested with no other key", "Another key attested for the instance. Replace the machine, or autoscaler-agent token create --instance ID."},
	{"A14", "a token could be made", "Look whether the API server answers, and whether 124 machines join at once."},
}

// Caller is what STS says of whoever signed.
type Caller struct{ Account, ARN, UserID string }

// Facts is everything beside the caller that the verdict rests on.
type Facts struct {
	Now       time.Time
	Partition string
	Account   string
	Roles     []string
	// Groups are the managed groups as read at last; Fault says why nothing is known.
	Groups []cluster.NodeGroup
	Fault  string
	// MaxAge is the oldest read of a group that counts.
	MaxAge time.Duration
	Window time.Duration
	// Key is the one that the machine has signed; Issued the one that has a certificate for
	// the instance, Attested the one that got a token before; empty: none is known.
	Key, Issued, Attested string
	// Node is one that carries the instance's provider ID or name; empty: there is none.
	Node string
}

// maxLead is how far a launch may be ahead of this machine's clock.
const maxLead = 2 * time.Minute

// InstanceOf returns the EC2 instance that the caller is, or the rule that objects.
func InstanceOf(c Caller, f Facts) (string, Verdict) {
	no := func(rule, format string, args ...any) (string, Verdict) {
		return "", Verdict{Rule: rule, Why: fmt.Sprintf(format, args...)}
	}
	if c.Account != f.Account {
		return no("A6", "the caller is of account %q, not of %s", clip(c.Account), f.Account)
	}
	rest, ok := strings.CutPrefix(c.ARN, "arn:"+f.Partition+":sts::"+f.Account+":assumed-role/")
	if !ok {
		return no("A7", "the caller %q is no role of account %s", clip(c.ARN), f.Account)
	}
	role, session, _ := strings.Cut(rest, "/")
	if !slices.Contains(f.Roles, role) {
		return no("A7", "the caller's role %q is not one of %s", clip(role), strings.Join(f.Roles, ", "))
	}
	if !soundInstance(session) {
		return no("A8", "the session %q of role %s is not named as an EC2 instance", clip(session), role)
	}
	if id, of, _ := strings.Cut(c.UserID, ":"); !strings.HasPrefix(id, "AROA") || of != session {
		return no("A8", "the caller's user ID %q is not that of a role's session %s", clip(c.UserID), session)
	}
	return session, Verdict{}
}

// Find returns the instance as the inventory has it.
func Find(groups []cluster.NodeGroup, id string) (*cluster.NodeGroup, *cluster.Instance) {
	for g := range groups {
		for i := range groups[g].Instances {
			in := &groups[g].Instances[i]
			if strings.HasPrefix(string(in.ID), "aws:///") && in.ID.Last() == id {
				return &groups[g], in
			}
		}
	}
	return nil, nil
}

// Decide judges an instance that has proven who it is.
func Decide(id string, f Facts) Verdict {
	later := func(rule, format string, args ...any) Verdict {
		return Verdict{Rule: rule, Why: fmt.Sprintf(format, args...), Later: true}
	}
	no := func(rule, format string, args ...any) Verdict {
		return Verdict{Rule: rule, Why: fmt.Sprintf(format, args...)}
	}
	g, in := Find(f.Groups, id)
	switch {
	case in == nil && f.Fault != "":
		return later("A9", "the cloud could not be read: %s", f.Fault)
	case in == nil:
		return later("A10", "no managed group has instance %s", id)
	case g.Stale != "" || f.Now.Sub(g.WitnessedAt()) > f.MaxAge:
		return later("A9", "group %s was read at %s (%s)", g.ID, g.WitnessedAt().UTC().Format(time.RFC3339), g.Stale)
	case !in.Member || in.Phase != cluster.PhasePending && in.Phase != cluster.PhaseRunning:
		return no("A10", "group %s does not wait for instance %s (phase %q, member %t)", g.ID, id, in.Phase, in.Member)
	case in.Created.IsZero():
		return no("A11", "the cloud does not say when instance %s was launched", id)
	case in.Created.After(f.Now.Add(maxLead)):
		return later("A11", "instance %s was launched at %s, which is ahead of this machine's clock", id, in.Created.UTC().Format(time.RFC3339))
	case f.Now.Sub(in.Created) > f.Window:
		return no("A11", "instance %s was launched %s ago, more than %s", id, f.Now.Sub(in.Created).Round(time.Second), f.Window)
	case f.Issued != "" && f.Issued != f.Key:
		return no("A12", "instance %s has a certificate, with another key", id)
	case f.Node != "" && f.Issued != f.Key:
		return no("A12", "instance %s has joined as Node %s", id, f.Node)
	case f.Attested != "" && f.Attested != f.Key:
		return no("A13", "instance %s was attested with another key: if its disk was made anew, autoscaler-agent token create --instance %s", id, in.ID)
	}
	return Verdict{}
}

// soundInstance tells whether s is written as EC2 writes instance IDs.
func soundInstance(s string) bool {
	hex, ok := strings.CutPrefix(s, "i-")
	return ok && (len(hex) == 8 || len(hex) == 17) && strings.Trim(hex, "0123456789abcdef") == ""
}

// clip bounds what a stranger has written.
func clip(s string) string {
	if len(s) > 120 {
		s = s[:120] + "..."
	}
	return strings.ToValidUTF8(s, "?")
}
