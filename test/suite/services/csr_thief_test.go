package services

import (
	"crypto/elliptic"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	certv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/bootstrap"
	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/world"
)

// thiefRows are what a stolen join token asks for beside a machine that has come: its
// Node proves that a certificate was issued, and nobody here knows to which key.
func thiefRows() []csrRow {
	ready := []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now()}}
	rows := []csrRow{
		{name: "thief: as a Node that is NotReady", rule: "J13", register: func(_ *csrCase, n *corev1.Node) *corev1.Node { return n }},
		{name: "thief: by another name of a machine that has a Node", rule: "J13", register: func(e *csrCase, n *corev1.Node) *corev1.Node {
			n.Name = e.instance.ID
			return n
		}},
		{name: "thief: by another name of a machine that has a Ready Node", rule: "J13", register: func(e *csrCase, n *corev1.Node) *corev1.Node {
			n.Name, n.Status.Conditions = strings.Split(e.instance.PrivateDNS, ".")[0], ready
			return n
		}},
		{name: "thief: by a template's name of a machine that has a Node", rule: "J13", prepare: func(_ *testing.T, _ *corpus, e *csrCase) { e.node = e.instance.ID + ".workers.example.com" },
			register: func(e *csrCase, n *corev1.Node) *corev1.Node {
				n.Name = e.instance.PrivateDNS
				return n
			}},
		{name: "thief: of a machine that joined by hand under a name of its own", rule: "J13", register: func(e *csrCase, n *corev1.Node) *corev1.Node {
			n.Name = "by-hand-" + e.instance.ID
			return n
		}},
		{name: "thief: as a Ready Node of another machine", rule: "J14", prepare: func(_ *testing.T, c *corpus, e *csrCase) { e.peers = append(e.peers, c.take()) },
			register: func(e *csrCase, n *corev1.Node) *corev1.Node {
				n.Spec.ProviderID, n.Status.Conditions = subject{instance: e.peers[0]}.providerID(), ready
				return n
			}},
		{name: "thief: before the launch", rule: "J12", prepare: func(t *testing.T, c *corpus, e *csrCase) {
			e.instance = c.rewire(t, e.instance.ID, func(n *aws.Network) { n.LaunchTime = time.Now().Add(time.Hour) })
		}},
		{name: "thief: of a token with no ID", rule: "J9", ask: func(_ *csrCase, a *asking) { a.user = "system:bootstrap:" }},
		{name: "thief: of almost a token", rule: "J0", ask: func(_ *csrCase, a *asking) {
			a.user, a.groups = "system:bootstrapper:abcdef", append(a.groups, "corpus:anybody")
		}},
		{name: "thief: as a node, with the token's groups", rule: "J0", ask: func(e *csrCase, a *asking) { a.user = "system:node:" + e.node }},
		{name: "thief: with a token, of the nodes too", rule: "J2", ask: func(_ *csrCase, a *asking) { a.groups = append(a.groups, "system:nodes") }},
	}
	for i := range rows {
		rows[i].threat, rows[i].join = "T3", true
	}
	return rows
}

// agentRows are what the agent's own credential, or a token that it mints, asks for.
func agentRows() []csrRow {
	as := func(groups ...string) func(*csrCase, *asking) {
		return func(_ *csrCase, a *asking) { a.user, a.groups = world.AgentUser, append(groups, "corpus:anybody") }
	}
	// called lets the cloud vouch for a name of the control plane, whose Node register makes.
	called := func(name string) prepareFunc {
		return func(t *testing.T, c *corpus, e *csrCase) {
			e.instance = c.rewire(t, e.instance.ID, func(n *aws.Network) { n.PrivateDNS = name })
			e.node = name
		}
	}
	control := func(label, name, address string) registerFunc {
		return func(_ *csrCase, n *corev1.Node) *corev1.Node {
			n.Name, n.Spec.ProviderID = name, ""
			n.Labels = map[string]string{"node-role.kubernetes.io/control-plane": "", label: ""}
			if address != "" {
				n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: address}}
			}
			return n
		}
	}
	const label = "node-role.kubernetes.io/control-plane"
	rows := []csrRow{
		{name: "agent: a serving certificate", rule: "R0", ask: as()},
		{name: "agent: a serving certificate, of the nodes", rule: "R0", ask: as("system:nodes", "system:authenticated")},
		{name: "agent: a client certificate", rule: "J0", join: true, ask: as()},
		{name: "agent: a client certificate, of the token's groups", rule: "J0", join: true, ask: as("system:bootstrappers", bootstrap.WorkersGroup, "system:authenticated")},
		{name: "agent's token: as another control-plane machine", rule: "J8", join: true, prepare: called("control-plane-7"), register: control(label, "control-plane-7", "")},
		{name: "agent's token: as a control-plane machine's host name", rule: "J8", join: true, prepare: called("cp8.example.com"), register: control(label, "control-plane-8", "CP8.example.com")},
		{name: "agent's token: as a control-plane machine that has another role too", rule: "J8", join: true, prepare: called("control-plane-9"),
			register: control("node-role.kubernetes.io/master", "control-plane-9", "")},
	}
	for i := range rows {
		rows[i].threat = "T3"
	}
	return rows
}

// honestLeaving are machines that run while Auto Scaling lets them stand by, or wait on
// their way out: their certificates are renewed.
func honestLeaving() []csrRow {
	in := func(n int, state string, move func(*testing.T, *autoscaling.Client, string)) prepareFunc {
		return func(t *testing.T, c *corpus, e *csrCase) {
			e.instance = c.leaving[n]
			e.node = e.instance.PrivateDNS
			keys := c.cloud.RootCredentials()
			move(t, autoscaling.NewFromConfig(sdk.Config{Region: c.cloud.Region(), BaseEndpoint: sdk.String(c.cloud.Endpoint()),
				Credentials: credentials.NewStaticCredentialsProvider(keys.AccessKeyID, keys.SecretAccessKey, "")}), e.instance.ID)
			await.True(t, "the machine is in "+state, func() bool {
				i, _ := c.cloud.Instance(e.instance.ID)
				return i.Lifecycle == state && i.State == "running"
			})
		}
	}
	standby := func(t *testing.T, admin *autoscaling.Client, id string) {
		if _, err := admin.EnterStandby(t.Context(), &autoscaling.EnterStandbyInput{AutoScalingGroupName: sdk.String("leaving"),
			InstanceIds: []string{id}, ShouldDecrementDesiredCapacity: sdk.Bool(false)}); err != nil {
			t.Fatal(err)
		}
	}
	wait := func(t *testing.T, admin *autoscaling.Client, id string) {
		if _, err := admin.PutLifecycleHook(t.Context(), &autoscaling.PutLifecycleHookInput{AutoScalingGroupName: sdk.String("leaving"), LifecycleHookName: sdk.String("out"),
			LifecycleTransition: sdk.String("autoscaling:EC2_INSTANCE_TERMINATING"), HeartbeatTimeout: sdk.Int32(3600)}); err != nil {
			t.Fatal(err)
		}
		if _, err := admin.TerminateInstanceInAutoScalingGroup(t.Context(), &autoscaling.TerminateInstanceInAutoScalingGroupInput{
			InstanceId: sdk.String(id), ShouldDecrementDesiredCapacity: sdk.Bool(false)}); err != nil {
			t.Fatal(err)
		}
	}
	return []csrRow{
		{name: "machine in Standby", again: true, prepare: in(0, "Standby", standby)},
		{name: "machine in Terminating:Wait", again: true, prepare: in(1, "Terminating:Wait", wait)},
		{name: "join of a machine in Standby", join: true, prepare: in(2, "Standby", standby)},
	}
}

// testThief plays, one after the other, what takes several steps.
func (c *corpus) testThief(t *testing.T) {
	t.Run("posted before the launch", c.thiefPostsBefore)
	t.Run("two keys", c.thiefAsksBeside)
	t.Run("two names", c.thiefAsksTwice)
	t.Run("after a failover", c.thiefAfterFailover)
}

// rename gives a machine of the pool a name and an address that the agent has not read yet.
func (c *corpus) rename(t *testing.T, n int, launched time.Time) *csrCase {
	t.Helper()
	e := &csrCase{csrRow: csrRow{name: "thief", join: true}}
	e.instance = c.rewire(t, c.take().ID, func(net *aws.Network) { net.PrivateIP, net.LaunchTime = fmt.Sprintf("10.0.27.%d", n), launched })
	e.node = e.instance.PrivateDNS
	return e
}

// ask sends a join request of e under a name, with a key of its own.
func (c *corpus) ask(t *testing.T, e *csrCase, name, as string) {
	t.Helper()
	a := c.joining(&csrCase{csrRow: e.csrRow, subject: subject{node: as, instance: e.instance}})
	a.key = newKey(elliptic.P256())
	if err := c.send(t, name, a); err != nil {
		t.Fatal(err)
	}
}

func (c *corpus) holds(t *testing.T, name string, rules ...string) {
	t.Helper()
	await.True(t, fmt.Sprintf("%s is held by one of %v", name, rules), func() bool { return slices.Contains(rules, c.verdicts(t)[name]) })
	if _, outcome := c.seen.of(name); outcome != "" {
		t.Errorf("%s: %s", name, outcome)
	}
}

func (c *corpus) approves(t *testing.T, name string) {
	t.Helper()
	if _, err := c.seen.within(name, time.Now(), await.Limit); err != nil {
		t.Errorf("%s: %v (%q)\n%s", name, err, c.verdicts(t)[name], c.said(t, name))
	}
}

// thiefPostsBefore: a request from seconds before the launch waits for ever; the machine,
// whose launch comes, gets in beside it.
func (c *corpus) thiefPostsBefore(t *testing.T) {
	e := c.rename(t, 1, time.Now().Add(time.Hour))
	c.ask(t, e, "early-thief", e.node)
	c.holds(t, "early-thief", "J12")
	launched := time.Now().Truncate(time.Second).Add(2 * time.Second) // the request is older, however slow this host is
	e.instance = c.rewire(t, e.instance.ID, func(n *aws.Network) { n.LaunchTime = launched })
	time.Sleep(time.Until(launched)) // nothing tells of this moment but the clock
	c.ask(t, e, "early-machine", e.node)
	c.approves(t, "early-machine")
	c.holds(t, "early-thief", "J12", "J13")
}

// thiefAsksBeside: two keys ask for a name before the machine of that name is known. Both
// are held; the one that an operator leaves gets in.
func (c *corpus) thiefAsksBeside(t *testing.T) {
	const node = "ip-10-0-27-2.ec2.internal"
	e := &csrCase{csrRow: csrRow{name: "thief", join: true}}
	c.ask(t, e, "beside-thief", node)
	c.ask(t, e, "beside-machine", node)
	c.holds(t, "beside-machine", "J11")
	if got := c.rename(t, 2, time.Now().Add(-launchedFor)); got.node != node {
		t.Fatalf("the machine is called %s", got.node)
	}
	await.True(t, "one of the two is held by J16", func() bool {
		v := c.verdicts(t)
		return v["beside-machine"] == "J16" || v["beside-thief"] == "J16"
	})
	for _, name := range []string{"beside-thief", "beside-machine"} {
		if _, outcome := c.seen.of(name); outcome != "" {
			t.Errorf("%s: %s", name, outcome)
		}
	}
	requests := c.cp.Client().CertificatesV1().CertificateSigningRequests()
	csr, err := requests.Get(t.Context(), "beside-thief", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	csr.Status.Conditions = append(csr.Status.Conditions, certv1.CertificateSigningRequestCondition{Type: certv1.CertificateDenied, Status: corev1.ConditionTrue, Reason: "Operator"})
	if _, err := requests.UpdateApproval(t.Context(), csr.Name, csr, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.approves(t, "beside-machine")
}

// thiefAsksTwice: a machine has one certificate, by whichever of its names, also for the
// key that it has.
func (c *corpus) thiefAsksTwice(t *testing.T) {
	e := c.rename(t, 3, time.Now().Add(-launchedFor))
	a := c.joining(e)
	a.key = newKey(elliptic.P256())
	if err := c.send(t, "names-first", a); err != nil {
		t.Fatal(err)
	}
	c.approves(t, "names-first")
	alias := c.joining(&csrCase{csrRow: e.csrRow, subject: subject{node: e.instance.ID, instance: e.instance}})
	alias.key = a.key
	if err := c.send(t, "names-alias", alias); err != nil {
		t.Fatal(err)
	}
	c.holds(t, "names-alias", "J13")
}

// thiefAfterFailover: an agent that has nothing but the API server's word comes to lead,
// most of an hour after the machine came. Its NotReady Node is all that tells of it.
func (c *corpus) thiefAfterFailover(t *testing.T) {
	e := c.rename(t, 4, time.Now().Add(-launchedFor))
	c.ask(t, e, "failover-machine", e.node)
	c.approves(t, "failover-machine")
	if _, err := c.as(t, e.kubelet()).CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: e.node},
		Spec: corev1.NodeSpec{ProviderID: e.providerID()}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := c.agent.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.cp.Client().CertificatesV1().CertificateSigningRequests().Delete(t.Context(), "failover-machine", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(c.w.StateDir(), "joined.json")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	c.startAgent(t, "corpus")
	c.ask(t, e, "failover-thief", e.node)
	c.ask(t, e, "failover-alias", e.instance.ID)
	c.holds(t, "failover-thief", "J13")
	c.holds(t, "failover-alias", "J13")
}
