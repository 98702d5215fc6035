package services

import (
	"crypto"
	"crypto/elliptic"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	certv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/world"
)

// honestRows are what kubelets of real machines send.
func honestRows() []csrRow {
	return slices.Concat(honestNames(), honestAddresses(), honestKeys(), honestForms(), honestJoins(), honestLeaving(), honestClouds())
}

func honestNames() []csrRow {
	called := func(name func(aws.Instance) string) prepareFunc {
		return func(_ *testing.T, _ *corpus, e *csrCase) { e.node = name(e.instance) }
	}
	resource := func(name func(aws.Instance) string) prepareFunc {
		return func(t *testing.T, c *corpus, e *csrCase) {
			e.instance = c.rewire(t, e.instance.ID, func(n *aws.Network) { n.HostnameType = "resource-name" })
			e.node = name(e.instance)
		}
	}
	short := func(i aws.Instance) string { return strings.Split(i.PrivateDNS, ".")[0] }
	id := func(i aws.Instance) string { return i.ID }
	full := func(i aws.Instance) string { return i.ID + ".ec2.internal" }
	also := func(name func(*csrCase) string) func(*csrCase, *asking) {
		return func(e *csrCase, a *asking) { a.names = append(a.names, dnsName(name(e))) }
	}
	custom := func(t *testing.T, c *corpus, e *csrCase) {
		e.instance = c.rewire(t, e.instance.ID, func(n *aws.Network) {
			n.PrivateDNS = strings.Replace(e.instance.PrivateDNS, "ec2.internal", "corp.example.com", 1)
		})
		e.node = e.instance.PrivateDNS
	}
	return []csrRow{
		{name: "ip-name"},
		{name: "ip-name, host name cut", prepare: called(short)},
		{name: "ip-name, host name cut, both names", prepare: called(short), ask: also(func(e *csrCase) string { return e.instance.PrivateDNS })},
		{name: "ip-name, both names", ask: also(func(e *csrCase) string { return short(e.instance) })},
		{name: "ip-name, instance ID as host name", prepare: called(id)},
		{name: "ip-name, instance ID with domain as host name", prepare: called(full)},
		{name: "resource-name", prepare: resource(full)},
		{name: "resource-name, host name cut", prepare: resource(id)},
		{name: "resource-name, both names", prepare: resource(full), ask: also(func(e *csrCase) string { return e.instance.ID })},
		{name: "resource-name, ip-name as well", prepare: resource(full), ask: also(func(e *csrCase) string {
			return "ip-" + strings.ReplaceAll(e.instance.PrivateIP, ".", "-") + ".ec2.internal"
		})},
		{name: "domain of the VPC's own", prepare: custom},
		{name: "domain of the VPC's own, host name cut", prepare: func(t *testing.T, c *corpus, e *csrCase) { custom(t, c, e); e.node = short(e.instance) }},
		{name: "public name", ask: also(func(e *csrCase) string { return e.instance.PublicDNS })},
		{name: "public and private name", ask: func(e *csrCase, a *asking) {
			a.names = [][]byte{dnsName(e.instance.PublicDNS), dnsName(e.instance.PrivateDNS)}
		}},
		{name: "all names", ask: func(e *csrCase, a *asking) {
			i := e.instance
			a.names = [][]byte{dnsName(i.PrivateDNS), dnsName(short(i)), dnsName(i.ID), dnsName(full(i)), dnsName(i.PublicDNS)}
		}},
		{name: "upper-case name", ask: func(e *csrCase, a *asking) { a.names = [][]byte{dnsName(strings.ToUpper(e.node))} }},
		{name: "mixed-case public name", ask: also(func(e *csrCase) string { return strings.Replace(e.instance.PublicDNS, "ec2", "Ec2", 1) })},
		{name: "name by the operator's template", ask: also(func(e *csrCase) string { return e.instance.ID + ".workers.example.com" })},
		{name: "name only", ask: func(e *csrCase, a *asking) { a.names = [][]byte{dnsName(e.node)} }},
	}
}

func honestAddresses() []csrRow {
	has := func(of ...func(aws.Instance) []byte) func(*csrCase, *asking) {
		return func(e *csrCase, a *asking) {
			a.names = nil
			for _, f := range of {
				a.names = append(a.names, f(e.instance))
			}
		}
	}
	name := func(i aws.Instance) []byte { return dnsName(i.PrivateDNS) }
	v4 := func(i aws.Instance) []byte { return ipName(i.PrivateIP) }
	v6 := func(i aws.Instance) []byte { return ipName(i.IPv6) }
	eip := func(i aws.Instance) []byte { return ipName(i.PublicIP) }
	public := func(i aws.Instance) []byte { return dnsName(i.PublicDNS) }
	secondary := func(t *testing.T, c *corpus, e *csrCase) {
		e.instance = c.rewire(t, e.instance.ID, func(n *aws.Network) { n.Secondary = []string{"10.0.30.1", "10.0.30.2"} })
	}
	return []csrRow{
		{name: "IPv4 only, no name", ask: has(v4)},
		{name: "IPv6 only, no name", ask: has(v6)},
		{name: "IPv6 only", ask: has(name, v6)},
		{name: "IPv4 in sixteen bytes", ask: has(name, func(i aws.Instance) []byte { return ipName("::ffff:" + i.PrivateIP) })},
		{name: "dual stack", ask: has(name, v4, v6)},
		{name: "dual stack, IPv6 first", ask: has(name, v6, v4)},
		{name: "dual stack, no name", ask: has(v4, v6)},
		{name: "Elastic IP address", ask: has(name, v4, eip)},
		{name: "Elastic IP address alone", ask: has(eip)},
		{name: "Elastic IP address and public name", ask: has(name, public, v4, eip)},
		{name: "every address", ask: has(name, v4, v6, eip)},
		{name: "every address and name", ask: has(public, eip, name, v6, v4)},
		{name: "addresses before names", ask: has(eip, v6, v4, public, name)},
		{name: "machine with addresses for pods", prepare: secondary},
		{name: "machine without public address", prepare: func(t *testing.T, c *corpus, e *csrCase) {
			e.instance = c.rewire(t, e.instance.ID, func(n *aws.Network) { n.PublicIP = "" })
		}},
		{name: "machine without IPv6", prepare: func(t *testing.T, c *corpus, e *csrCase) {
			e.instance = c.rewire(t, e.instance.ID, func(n *aws.Network) { n.IPv6 = "" })
		}},
		{name: "machine launched this moment", prepare: func(t *testing.T, c *corpus, e *csrCase) {
			e.instance = c.rewire(t, e.instance.ID, func(n *aws.Network) { n.LaunchTime = time.Now() })
		}},
		{name: "address of a machine that is gone", prepare: func(t *testing.T, c *corpus, e *csrCase) {
			old := c.take()
			if err := c.cloud.TerminateInstance(old.ID); err != nil {
				t.Fatal(err)
			}
			await.True(t, "the old machine is gone", func() bool { i, _ := c.cloud.Instance(old.ID); return i.State == "terminated" })
			e.instance = c.rewire(t, e.instance.ID, func(n *aws.Network) { n.PrivateIP = old.PrivateIP })
			e.node = e.instance.PrivateDNS
		}},
	}
}

func honestKeys() []csrRow {
	const ds, ke, sa = certv1.UsageDigitalSignature, certv1.UsageKeyEncipherment, certv1.UsageServerAuth
	var out []csrRow
	add := func(name string, key func() crypto.Signer, usages ...certv1.KeyUsage) {
		out = append(out, csrRow{name: name, ask: func(_ *csrCase, a *asking) { a.key, a.usages = key(), usages }})
	}
	for _, curve := range []elliptic.Curve{elliptic.P256(), elliptic.P384(), elliptic.P521()} {
		key := func() crypto.Signer { return newKey(curve) }
		add("ECDSA "+curve.Params().Name, key, ds, sa)
		add("ECDSA "+curve.Params().Name+" of an old kubelet", key, ds, ke, sa)
	}
	for _, bits := range []int{2048, 3072, 4096} {
		key := func() crypto.Signer { return rsaKey(bits) }
		add(fmt.Sprintf("RSA %d", bits), key, ds, ke, sa)
		add(fmt.Sprintf("RSA %d without encipherment", bits), key, ds, sa)
	}
	ed := func() crypto.Signer { return edKey }
	add("Ed25519", ed, ds, sa)
	add("Ed25519, usages in another order", ed, sa, ds)
	add("RSA 2048, usages in another order", func() crypto.Signer { return rsaKey(2048) }, sa, ke, ds)
	add("ECDSA P-256, usages in another order", func() crypto.Signer { return ecKey }, sa, ds)
	return out
}

func honestForms() []csrRow {
	life := func(s int32) func(*csrCase, *asking) { return func(_ *csrCase, a *asking) { a.expiration = &s } }
	return []csrRow{
		{name: "life of 10 minutes", ask: life(600)},
		{name: "life of an hour", ask: life(3600)},
		{name: "life of a day", ask: life(86400)},
		{name: "common name before organization", ask: func(_ *csrCase, a *asking) { slices.Reverse(a.subject) }},
		{name: "printable strings", ask: func(_ *csrCase, a *asking) {
			for i := range a.subject {
				a.subject[i][0].tag = tagPrintable
			}
		}},
		{name: "no line break at the end", ask: func(_ *csrCase, a *asking) {
			a.pem = func(b []byte) []byte { return []byte(strings.TrimSpace(string(b))) }
		}},
		{name: "renewal", again: true},
		{name: "the leader", again: true, prepare: func(_ *testing.T, _ *corpus, e *csrCase) { e.node = "leader" },
			register: func(*csrCase, *corev1.Node) *corev1.Node { return nil }, // it is there already
			ask:      leaderAsks},
		{name: "renewal, RSA", again: true, ask: func(_ *csrCase, a *asking) {
			a.key, a.usages = rsaKey(2048), []certv1.KeyUsage{certv1.UsageDigitalSignature, certv1.UsageKeyEncipherment, certv1.UsageServerAuth}
		}},
		{name: "renewal, dual stack", again: true, ask: func(e *csrCase, a *asking) { a.names = append(a.names, ipName(e.instance.IPv6)) }},
		{name: "renewal, new key", again: true, ask: func(_ *csrCase, a *asking) { a.key = newKey(elliptic.P256()) }},
		{name: "renewal, host name cut", again: true, prepare: func(_ *testing.T, _ *corpus, e *csrCase) { e.node = strings.Split(e.node, ".")[0] }},
	}
}

// leaderAsks has the names and addresses of the machine that the agent runs on.
func leaderAsks(_ *csrCase, a *asking) {
	a.names = [][]byte{dnsName("leader")}
	if name, err := os.Hostname(); err == nil {
		a.names = append(a.names, dnsName(strings.ToLower(name)))
	}
	list, _ := net.InterfaceAddrs()
	for _, i := range list {
		if n, ok := i.(*net.IPNet); ok && n.IP.IsGlobalUnicast() && n.IP.To4() != nil {
			a.names = append(a.names, addressBytes(n.IP.To4()...))
		}
	}
}

// testHonest sends the honest requests, a few at a time as machines come, and
// measures how long each waits for its approval: half of them at most 500 ms, where the flood is
// asked for (make flood; a speed is no part of make test-all).
func (c *corpus) testHonest(t *testing.T) {
	joins := slices.DeleteFunc(slices.Clone(c.honest), func(e *csrCase) bool { return !e.join })
	took := c.approve(t, slices.DeleteFunc(slices.Clone(c.honest), func(e *csrCase) bool { return e.join }), await.Limit)
	report(t, "honest requests for serving certificates", took)
	joined := c.approve(t, joins, await.Limit)
	report(t, "honest joins", joined)
	took = append(took, joined...)
	slices.Sort(took)
	if median := took[len(took)/2]; median > 500*time.Millisecond && c.flood > 0 {
		t.Errorf("the median is %s, more than 500ms", median)
	}
}

// approve sends the requests of entries and returns how long each approval took.
func (c *corpus) approve(t *testing.T, entries []*csrCase, limit time.Duration) []time.Duration {
	t.Helper()
	var mu sync.Mutex
	var took []time.Duration
	parallel(2, entries, func(e *csrCase) {
		times := 1
		if e.again {
			times = 2
		}
		for n := range times {
			a := c.asking(e)
			name := fmt.Sprintf("honest-%s-%d", e.key(), n)
			start := time.Now()
			if err := c.send(t, name, a); err != nil {
				t.Errorf("%s: %v", e.name, err)
				return
			}
			d, err := c.seen.within(name, start, limit)
			if err != nil {
				t.Errorf("%s: request %d of Node %s: %v (last verdict %q)", e.name, n+1, e.node, err, c.verdicts(t)[name])
				return
			}
			mu.Lock()
			took = append(took, d)
			mu.Unlock()
		}
	})
	return took
}

func report(t *testing.T, what string, took []time.Duration) {
	t.Helper()
	if len(took) == 0 {
		t.Fatalf("no %s", what)
	}
	slices.Sort(took)
	at := func(share float64) time.Duration {
		return took[int(share*float64(len(took)-1))].Round(100 * time.Microsecond)
	}
	t.Logf("%d %s approved, from creation to the condition: median %s, p99 %s, slowest %s", len(took), what, at(0.5), at(0.99), at(1))
}

// testRegion restarts the agent in another region, where names are formed otherwise,
// with everything that is pending still there.
func (c *corpus) testRegion(t *testing.T) {
	const seed = 6
	eu, err := aws.New(aws.Options{Region: "eu-west-1", Seed: seed, LaunchDelay: time.Millisecond, BootDelay: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(eu.Close)
	c.cloud = eu
	rows := regionRows()
	c.pool = c.group(t, "europe", len(rows), "10.2", map[string]string{
		"k8s.io/cluster-autoscaler/enabled": "", "k8s.io/cluster-autoscaler/" + world.ClusterName: ""})
	entries := c.enrol(rows)
	c.register(t, entries)
	if err := c.agent.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The cluster's domain is that of its machines, too.
	c.startAgent(t, "europe", append(eu.Env(), "AUTOSCALER_CSR_DNS_DOMAIN=eu-west-1.compute.internal")...)
	report(t, fmt.Sprintf("honest requests in eu-west-1 (seed %d) after a restart with the flood pending", seed), c.approve(t, entries, await.Limit))
	t.Logf("the agent has %d MB", rss(t, c.agent.PID())>>20)
}

func regionRows() []csrRow {
	called := func(name func(aws.Instance) string) prepareFunc {
		return func(_ *testing.T, _ *corpus, e *csrCase) { e.node = name(e.instance) }
	}
	return []csrRow{
		{name: "eu: ip-name"},
		{name: "eu: ip-name, host name cut", prepare: called(func(i aws.Instance) string { return strings.Split(i.PrivateDNS, ".")[0] })},
		{name: "eu: instance ID", prepare: called(func(i aws.Instance) string { return i.ID })},
		{name: "eu: resource name", prepare: called(func(i aws.Instance) string { return i.ID + ".eu-west-1.compute.internal" })},
		{name: "eu: public name", ask: func(e *csrCase, a *asking) {
			a.names = append(a.names, dnsName(e.instance.PublicDNS), ipName(e.instance.PublicIP))
		}},
		{name: "eu: dual stack", ask: func(e *csrCase, a *asking) { a.names = append(a.names, ipName(e.instance.IPv6)) }},
	}
}
