package nojoin

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap/console"
)

// Facts are what is known of an instance.
type Facts struct {
	Known Known
	// Console is what its console tells; nil: it was not read, and ConsoleFault says why.
	Console      *console.Diagnosis
	ConsoleFault string
	// UserData is what its user data holds; nil: it was not read.
	UserData *UserData
}

// UserData is what the user data of an instance holds, and what came of trying it from here.
type UserData struct {
	From       string `json:"from,omitempty"`
	Endpoint   string `json:"endpoint,omitempty"`
	TokenID    string `json:"tokenID,omitempty"`
	Attest     string `json:"attest,omitempty"` // the listener that its machines ask for a token
	PerServer  bool   `json:"perServer,omitempty"`
	Kubernetes string `json:"kubernetes,omitempty"`
	// Fault is why no machine can join with it; empty: what could be tried works.
	Fault  string `json:"fault,omitempty"`
	Remedy string `json:"remedy,omitempty"`
	// Unread says why it is not known.
	Unread string `json:"unread,omitempty"`
	// Foreign tells that autoscaler-agent userdata render did not make it.
	Foreign bool `json:"foreign,omitempty"`
}

// Conclusion is what the facts say together.
type Conclusion struct {
	// Found tells that a group has the instance, or that its console could be read.
	Found bool `json:"found"`
	// Summary names the cause in one sentence, Remedy what to do about it.
	Summary string `json:"summary"`
	Remedy  string `json:"remedy,omitempty"`
	// Known are the facts, one a line.
	Known []string `json:"known,omitempty"`
}

// causes are asked in turn: the first that has an answer is the one to tell. What the API server or
// the cloud shows comes before what the machine writes, and that before what was tried from here.
var causes = []func(Facts) (cause, remedy string){
	endedByUs, joined, notRunning, heldRequest, ownWords, ended, lostCertificate, namesake, refusedAttestation, badUserData, hangs, foreignUserData,
	unread, neverLaunched, unseen,
}

// Conclude names the most decisive cause.
func Conclude(f Facts) Conclusion {
	c := Conclusion{Found: f.Known.Group != "" || f.Console != nil || f.Known.Ended != nil, Known: known(f)}
	for _, cause := range causes {
		if c.Summary, c.Remedy = cause(f); c.Summary != "" {
			return c
		}
	}
	return c
}

// line is the conclusion in one line.
func (c Conclusion) line() string {
	if c.Remedy == "" {
		return c.Summary
	}
	return c.Summary + " (" + c.Remedy + ")"
}

// endedByUs is for an instance that this agent has ended.
func endedByUs(f Facts) (cause, remedy string) {
	if e := f.Known.Ended; e != nil {
		return fmt.Sprintf("this agent has ended it, at %s by rule %s: %s", e.At.UTC().Format(time.RFC3339), e.Rule, e.Why), "docs/scaling-rules.md has the rule"
	}
	return "", ""
}

// joined is for an instance that has a Node, or several under different names.
func joined(f Facts) (cause, remedy string) {
	nodes := slices.DeleteFunc(slices.Clone(f.Known.Nodes), func(n Node) bool { return n.NameOnly })
	if len(nodes) == 0 {
		return "", ""
	}
	ready := slices.IndexFunc(nodes, func(n Node) bool { return n.Ready == cluster.StatusTrue })
	if other := slices.IndexFunc(nodes, func(n Node) bool { return n.Ready != cluster.StatusTrue }); ready >= 0 && other >= 0 {
		return RenamedText(cluster.NodeName(nodes[other].Name), cluster.NodeName(nodes[ready].Name)), RenamedRemedy
	}
	if ready >= 0 {
		return "it has joined as Node " + nodes[ready].Name + ", which is Ready", ""
	}
	n := nodes[0]
	cause = fmt.Sprintf("it has joined as Node %s, which is not Ready since %s", n.Name, n.Since.UTC().Format(time.RFC3339))
	if r := f.Known.Request; r.Held() && r.Node == n.Name && r.At.After(n.Since) {
		return cause + ", and " + r.String(), "autoscaler-agent explain csr " + r.Name
	}
	if n.Ready == cluster.StatusUnknown && f.Known.Phase == cluster.PhaseRunning {
		cause += "; " + Silent
	}
	return cause, "autoscaler-agent explain node " + n.Name + "; on the machine journalctl -u kubelet"
}

// namesake is for a Node of the instance's name that does not tell its machine.
func namesake(f Facts) (cause, remedy string) {
	for _, n := range f.Known.Nodes {
		if n.NameOnly {
			return "a Node " + n.Name + " has its name and tells no provider ID: it is another machine's, or the instance has joined without the agent's user data", "autoscaler-agent explain node " + n.Name
		}
	}
	return "", ""
}

// notRunning is for an instance that the cloud does not run.
func notRunning(f Facts) (cause, remedy string) {
	switch f.Known.Phase {
	case cluster.PhasePending:
		return "the cloud has not started it yet", "wait; autoscaler-agent explain group " + string(f.Known.Group)
	case cluster.PhaseFailed:
		return "the cloud could not start it: " + f.Known.Failure, "correct what the cloud complains about"
	case cluster.PhaseStopped:
		return "the cloud has stopped it", "start it, or end it"
	}
	return "", ""
}

// ended is for an instance that is gone, or on its way out; what it said last is told before.
func ended(f Facts) (cause, remedy string) {
	switch f.Known.Phase {
	case cluster.PhaseDeleting:
		return "the cloud is ending it, and it has no Node", ""
	case cluster.PhaseGone:
		return "the cloud has ended it, and it has no Node", ""
	}
	return "", ""
}

// Held tells that a request waits or is denied.
func (r *Request) Held() bool { return r != nil && (r.Do == "later" || r.Do == "deny") }

func (r *Request) String() string {
	how := map[string]string{"later": "held", "deny": "denied", "approve": "approved", "leave": "left to others"}[r.Do]
	return fmt.Sprintf("its request %s for a %s is %s by rule %s: %s", r.Name, r.Kind, how, r.Rule, r.Why)
}

func heldRequest(f Facts) (cause, remedy string) {
	if r := f.Known.Request; r.Held() {
		return r.String(), "autoscaler-agent explain csr " + r.Name
	}
	return "", ""
}

// lostCertificate is for a kubelet that may join and has no Node.
func lostCertificate(f Facts) (cause, remedy string) {
	const onMachine = "on the machine journalctl -u kubelet; the API server's journal for refused registrations"
	if c := f.Console; c != nil && c.Joined && f.Known.Unread == "" {
		return "its user data came to its end and no Node of it is there: its kubelet has a certificate and does not register", onMachine
	}
	if r := f.Known.Request; r != nil && r.Do == "approve" && (f.Console == nil || f.Console.Reason == "") {
		return fmt.Sprintf("its client certificate was approved (%s, rule %s) and no Node of it has come: its kubelet ended since, or cannot reach the API server", r.Name, r.Rule), onMachine
	}
	return "", ""
}

// userDataReasons are the reasons of the script that the values of the user data explain better.
var userDataReasons = []string{"join-token", "token-refused", "cluster-info-signature", "ca-pin", "version-skew"}

// ownWords is what the machine writes on its console.
func ownWords(f Facts) (cause, remedy string) {
	c := f.Console
	if c == nil || c.Reason == "" {
		return "", ""
	}
	if u := f.UserData; u != nil && u.Fault != "" && slices.Contains(userDataReasons, c.Reason) {
		return u.Fault, u.Remedy
	}
	if len(c.Marks) == 0 {
		return c.Where + ": " + c.Likely, c.Remedy
	}
	return c.Likely, c.Remedy
}

func refusedAttestation(f Facts) (cause, remedy string) {
	a := f.Known.Attestation
	if a == nil || a.Rule == "" {
		return "", ""
	}
	return fmt.Sprintf("the leader refuses its attestation by rule %s: %s", a.Rule, a.Why), "docs/attested-join.md has the rule"
}

func badUserData(f Facts) (cause, remedy string) {
	if u := f.UserData; u != nil && u.Fault != "" {
		return u.Fault, u.Remedy
	}
	return "", ""
}

// foreignUserData is for user data whose values and steps are not known.
func foreignUserData(f Facts) (cause, remedy string) {
	if u := f.UserData; u != nil && u.Foreign && !f.Known.young() {
		return "its user data (" + u.From + ") was not made by autoscaler-agent userdata render, so that its values were not tried and it tells nothing of its steps", "autoscaler-agent userdata lint; the console itself; on the machine journalctl -u kubelet -u cloud-final"
	}
	return "", ""
}

// unread keeps silence from being taken for an answer.
func unread(f Facts) (cause, remedy string) {
	if f.Known.Unread == "" {
		return "", ""
	}
	return "why it has not joined is not known, because not all was read: " + f.Known.Unread, "ask again; autoscaler-agent check"
}

// hangs is for a console that shows the user data at work.
func hangs(f Facts) (cause, remedy string) {
	if c := f.Console; c != nil && len(c.Marks) > 0 {
		return c.Where + ": " + c.Likely, c.Remedy
	}
	return "", ""
}

// neverLaunched is for an instance that no group has.
func neverLaunched(f Facts) (cause, remedy string) {
	if f.Known.Group != "" {
		return "", ""
	}
	cause = "no node group has an instance of that ID"
	if len(f.Known.GroupFailures) == 0 {
		return cause, "autoscaler-agent status lists the groups"
	}
	last := slices.MaxFunc(f.Known.GroupFailures, func(a, b GroupFailure) int { return a.At.Compare(b.At) })
	return fmt.Sprintf("%s; the last machine of group %s could not be started: %s", cause, last.Group, last.Text), "autoscaler-agent explain group " + string(last.Group)
}

// bootTime is how long a machine may take to its first sign.
const bootTime = 3 * time.Minute

// young tells a machine that may not have come to its first sign yet.
func (k *Known) young() bool { return !k.Launched.IsZero() && k.At.Sub(k.Launched) < bootTime }

// unseen is for a machine of which there is no sign.
func unseen(f Facts) (cause, remedy string) {
	k := f.Known
	if k.young() {
		return fmt.Sprintf("it was launched %s ago and may still be booting: there is no sign of it yet", k.At.Sub(k.Launched).Round(time.Second)), "ask again in some minutes"
	}
	cause = "the control plane has no sign of it: no certificate request"
	if f.UserData != nil && f.UserData.Attest != "" {
		if k.Attestation != nil {
			cause += " since it got its token"
		} else {
			cause += " and no attestation"
		}
	}
	cause += " came"
	if u := f.UserData; u != nil && u.Unread == "" {
		cause += ", and the values of its user data work from here: the cause is on the machine (its image, disk, containerd, kubelet or clock) or on its way here (DNS, proxy, dropped packets)"
	}
	return cause, "on the machine journalctl -u autoscaler-agent-join -u kubelet -u containerd; the console itself"
}

var readiness = map[cluster.Status]string{cluster.StatusTrue: "Ready", cluster.StatusFalse: "not Ready", cluster.StatusUnknown: "not heard of"}

func (a *Attestation) String() string {
	if a.Rule == "" {
		return "it got its join token at " + a.At.UTC().Format(time.RFC3339)
	}
	return fmt.Sprintf("refused at %s by rule %s: %s", a.At.UTC().Format(time.RFC3339), a.Rule, a.Why)
}

func (u *UserData) String() string {
	switch {
	case u == nil:
		return "it was not read"
	case u.Unread != "":
		return u.Unread
	case u.Foreign:
		return u.From + ": not made by autoscaler-agent userdata render"
	case u.Endpoint == "":
		return u.From + ": tried from here it fails"
	}
	token := "token " + u.TokenID
	switch {
	case u.Attest != "":
		token = "a token from " + u.Attest
	case u.PerServer:
		token = "a token for each server"
	}
	line := fmt.Sprintf("%s: endpoint %s, %s, Kubernetes %s; ", u.From, u.Endpoint, token, u.Kubernetes)
	if u.Fault != "" {
		return line + "tried from here it fails"
	}
	return line + "tried from here it works"
}

// known writes the facts down, one a line.
func known(f Facts) (out []string) {
	k := f.Known
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	none := "none"
	if k.Unread != "" {
		none = "none is known"
	}
	if k.Group == "" {
		add("group: %s", none)
	} else {
		line := "group: " + string(k.Group) + ", " + string(k.Phase)
		if !k.Launched.IsZero() {
			line += fmt.Sprintf(", launched %s ago (it may take %s to join)", k.At.Sub(k.Launched).Round(time.Second), k.ProvisionTime)
		}
		add("%s", line)
	}
	if len(k.Nodes) == 0 {
		add("Node: %s", none)
	}
	for _, n := range k.Nodes {
		add("Node: %s, %s", n.Name, readiness[n.Ready])
	}
	if r := k.Request; r != nil {
		add("certificate request: %s", strings.TrimPrefix(r.String(), "its request "))
	} else {
		add("certificate request: none was judged lately")
	}
	if a := k.Attestation; a != nil {
		add("attestation: %s", a)
	}
	add("user data: %s", f.UserData)
	if k.Unread != "" {
		add("not read: %s", k.Unread)
	}
	switch {
	case f.Console != nil:
		add("console: %s", f.Console.Where)
	case f.ConsoleFault != "":
		add("console: %s", f.ConsoleFault)
	}
	return out
}
