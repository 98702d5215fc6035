package world

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/test/world/apiserver"
)

// judge watches what must never happen, and what must be so when a world has been left alone.
type judge struct {
	world *World

	mu       sync.Mutex
	found    []string
	spared   map[string]bool      // instances that a fault ends or hurts
	expected map[string]bool      // Nodes that a user deletes
	stolen   map[string]string    // requests that nobody may approve, and why
	lastEnd  time.Time            // of the faults so far
	wrote    map[string]time.Time // by what an agent changed: when last
	requests map[string]int       // by verb and kind
	peak     []need

	acts       []act
	forbidden  map[string]time.Time // when the cloud last refused a purchase, by agent, its life and group
	waiting    []wanted
	secrets    []time.Time       // when agents wrote Secrets
	mostRaises int               // of one group in a short time, so far
	kept       map[string]string // Nodes that nodecleaner keeps, and instances that the scaler keeps, and the rule that was told last
	free       float64           // machines of 4 cores that users have bought by hand lately
	troubled   time.Time         // until when something goes wrong, or has an aftermath
	failing    time.Time         // until when machines may fail to come
}

// need is how many machines the pods of a moment want, at least.
type need struct {
	at       time.Time
	machines int
}

func newJudge(w *World) *judge {
	return &judge{world: w, spared: map[string]bool{}, expected: map[string]bool{}, stolen: map[string]string{}, wrote: map[string]time.Time{}, kept: map[string]string{}, forbidden: map[string]time.Time{}, requests: map[string]int{}}
}

func (j *judge) violation(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	j.world.Tell("VIOLATION %s", text)
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.found) < 20 {
		j.found = append(j.found, text)
	}
}

// fault notes that something goes wrong.
func (j *judge) fault(f Fault) {
	j.mu.Lock()
	defer j.mu.Unlock()
	end := time.Now().Add(f.For)
	if end.After(j.lastEnd) {
		j.lastEnd = end
	}
	after := j.world.brisk(aftermath[f.Kind])
	if end := end.Add(after); after >= 0 && end.After(j.troubled) {
		j.troubled = end
	}
	if end := end.Add(after); after > 0 && end.After(j.failing) {
		j.failing = end
	}
}

// trouble notes that pods may wait for a while.
func (j *judge) trouble(d time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if end := time.Now().Add(d); end.After(j.troubled) {
		j.troubled = end
	}
}

func (j *judge) spare(m *machine) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.spared[m.ID] = true
}

func (j *judge) expect(node string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.expected[node] = true
}

// request notes what agents ask for.
func (j *judge) request(a *Agent, r *http.Request) {
	what := ""
	switch {
	case toCloud(r):
		if w := change(r); w != "" {
			what = w
		}
	case r.Method != http.MethodGet:
		parts := strings.Split(r.URL.Path, "/")
		what = r.Method + " " + parts[len(parts)-1]
		for _, p := range []string{"nodes", "eviction", "secrets", "configmaps", "certificatesigningrequests", "leases", "events"} {
			if slices.Contains(parts, p) {
				what = p
			}
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if what != "" {
		j.wrote[what] = time.Now()
		if what == "secrets" {
			j.secrets = append(j.secrets, time.Now())
		}
	} else {
		what = readOf(r)
	}
	j.requests[what]++
}

// readOf names what a request reads.
func readOf(r *http.Request) string {
	if toCloud(r) {
		return "reads of the cloud"
	}
	for _, p := range []string{"leases", "nodes", "pods", "secrets", "configmaps", "certificatesigningrequests"} {
		if strings.Contains(r.URL.Path, "/"+p) {
			return "reads of " + p
		}
	}
	return "other reads"
}

// nodeChanged is told of Nodes with the API server locked.
func (j *judge) nodeChanged(kind watch.EventType, _, is apiserver.Object) {
	if kind != watch.Deleted {
		return
	}
	j.mu.Lock()
	expected := j.expected[is.GetName()]
	delete(j.expected, is.GetName())
	j.mu.Unlock()
	if expected {
		return
	}
	f := j.world.fleet
	f.mu.Lock()
	var alive *machine
	for _, m := range f.machines {
		if m.name == is.GetName() && m.alive && m.node {
			alive = m
		}
	}
	f.mu.Unlock()
	if alive != nil {
		j.violation("Node %s (%s) is deleted, and its machine %s lives", is.GetName(), is.(*corev1.Node).Spec.ProviderID, alive.ID)
	}
}

// machineEnds is told of each machine that ends, by whoever.
func (j *judge) machineEnds(m *machine) {
	j.mu.Lock()
	spared := j.spared[m.ID]
	j.mu.Unlock()
	if spared || !m.node || !m.ready {
		return
	}
	n := apiserver.Get[*corev1.Node](j.world.API, "/nodes", "", m.name)
	if n == nil || n.Spec.ProviderID != m.providerID() {
		return
	}
	for _, p := range apiserver.List[*corev1.Pod](j.world.API, "/pods", "") {
		if p.Spec.NodeName == m.name && p.DeletionTimestamp == nil && p.Status.Phase == corev1.PodRunning {
			j.violation("machine %s (%s) is ended while pod %s runs on it", m.ID, m.name, p.Name)
			return
		}
	}
}

// longestToken is what no join token lives longer than (AUTOSCALER_BOOTSTRAP_TOKEN_TTL), and an hour in which clocks differ.
const longestToken = 49 * time.Hour

// secretChanged is told of Secrets with the API server locked.
func (j *judge) secretChanged(kind watch.EventType, _, is apiserver.Object) {
	s := is.(*corev1.Secret)
	if kind == watch.Deleted || s.Type != "bootstrap.kubernetes.io/token" {
		return
	}
	if at, err := time.Parse(time.RFC3339, string(s.Data["expiration"])); err != nil || time.Until(at) > longestToken {
		j.violation("join token %s ends at %q", s.Name, s.Data["expiration"])
	}
}

// requestChanged is told of certificate requests with the API server locked.
func (j *judge) requestChanged(kind watch.EventType, was, is apiserver.Object) {
	csr := is.(*certificatesv1.CertificateSigningRequest)
	if kind != watch.Modified || approved(was.(*certificatesv1.CertificateSigningRequest)) || !approved(csr) {
		return
	}
	j.mu.Lock()
	why, stolen := j.stolen[csr.Name]
	j.mu.Unlock()
	if stolen {
		j.violation("certificate request %s is approved: %s", csr.Name, why)
		return
	}
	block, _ := pem.Decode(csr.Spec.Request)
	r, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		j.violation("certificate request %s is approved: %v", csr.Name, err)
		return
	}
	name := strings.TrimPrefix(r.Subject.CommonName, "system:node:")
	f := j.world.fleet
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.machines { // one that has just ended is in it until the cloud has ended it
		if m.name == name {
			return
		}
	}
	j.violation("certificate request %s is approved for %s, and there is no such machine", csr.Name, name)
}

func approved(csr *certificatesv1.CertificateSigningRequest) bool {
	return slices.ContainsFunc(csr.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
		return c.Type == certificatesv1.CertificateApproved
	})
}

// logged is told of the agents' errors.
func (j *judge) logged(a *Agent, text string) {
	j.mu.Lock()
	calm := time.Since(j.lastEnd) > 10*time.Minute
	j.mu.Unlock()
	if calm && strings.Contains(text, "the watchdog is not fed") {
		j.violation("%s: %s", a.name, text)
	}
}

// needs are how many machines of a group the pods of this moment want at least, by plain sums.
func (w *World) needs() int {
	var cpu, memory float64
	for _, p := range apiserver.List[*corev1.Pod](w.API, "/pods", "") {
		if p.DeletionTimestamp == nil {
			c, m := requests(p)
			cpu, memory = cpu+float64(c), memory+float64(m)
		}
	}
	return int(math.Ceil(max(cpu/3800, memory/(14*(1<<30)))))
}

// look is called every minute: nothing is bought that the pods of the last hour did not want.
func (j *judge) look() {
	w := j.world
	now := time.Now()
	j.peak = append(j.peak, need{now, w.needs()})
	j.peak = slices.DeleteFunc(j.peak, func(n need) bool { return now.Sub(n.at) > w.brisk(2*time.Hour) })
	most := 0
	for _, n := range j.peak {
		most = max(most, n.machines)
	}
	wanted, good, max, least := 0, 0, 0, 0
	for _, g := range w.Cloud.Groups() {
		wanted, max, least = wanted+g.Desired, max+g.Max, least+g.Min
		for _, i := range g.Instances {
			w.fleet.mu.Lock()
			m := w.fleet.machines[i.ID]
			bad := m != nil && (m.never || m.sick || j.spared[m.ID])
			w.fleet.mu.Unlock()
			if !bad {
				good++
			}
		}
	}
	j.mu.Lock()
	limit := least + most + most/4 + 3 + int(j.free)
	j.mu.Unlock()
	j.patience()
	for _, a := range w.agents {
		if !a.killed {
			a.lookAtFiles()
		}
	}
	j.published()
	if good > limit {
		j.violation("%d machines, and the pods of the last two hours wanted %d at most", good, most)
	}
	if wanted > max {
		j.violation("%d machines are wanted, above the maximum of %d", wanted, max)
	}
	w.after(time.Minute, j.look)
}

// published: where nothing has gone wrong for a while, a machine can join with what each agent has published.
func (j *judge) published() {
	j.mu.Lock()
	calm := time.Since(j.troubled)
	j.mu.Unlock()
	if calm < waitBound {
		return
	}
	for _, a := range j.world.agents {
		text, err := os.ReadFile(filepath.Join(a.dir, "worker.env"))
		if a.killed || err != nil {
			continue
		}
		_, line, _ := strings.Cut("\n"+string(text), "\nJOIN_TOKEN=")
		token, _, _ := strings.Cut(line, "\n")
		id, secret, _ := strings.Cut(token, ".")
		if s := apiserver.Get[*corev1.Secret](j.world.API, "/secrets", "kube-system", "bootstrap-token-"+id); s == nil || ended(s) || string(s.Data["token-secret"]) != secret {
			j.violation("%s publishes the join token %q, which the cluster does not have", a.name, id)
		}
	}
}

// drainLasts is how long the agent may be emptying a Node whose pods all have a place.
const drainLasts = 10 * time.Minute

// settled judges a world that has been left alone.
func (j *judge) settled() {
	w := j.world
	var waiting []string
	for _, p := range apiserver.List[*corev1.Pod](w.API, "/pods", "") {
		if p.Status.Phase != corev1.PodRunning {
			waiting = append(waiting, fmt.Sprintf("%s (node %q, for %s, going %t)", p.Name, p.Spec.NodeName, time.Since(p.CreationTimestamp.Time), p.DeletionTimestamp != nil))
		}
	}
	if len(waiting) > 0 {
		j.violation("%d pods wait %s after the last fault: %s", len(waiting), j.quiet(), waiting[0])
	}
	names, took := map[string]bool{}, map[string]bool{}
	for _, m := range w.fleet.list() {
		names[m.name], took[m.name] = true, m.took
		if m.never && j.told(decision.RuleInstanceMin, m.providerID()) {
			continue // the agent has said that the group is at its minimum, and that somebody has to end the machine
		}
		if apiserver.Get[*corev1.Node](w.API, "/nodes", "", m.name) == nil {
			j.violation("machine %s (%s) has no Node %s after the last fault: booted %s ago, joined %v, never joins %v, silent %v", m.ID, m.name, j.quiet(), time.Since(m.since).Round(time.Second), m.node, m.never, m.sick)
		}
	}
	for _, m := range w.fleet.list() {
		if m.node && m.ready && !m.sick && !m.serves && !m.took {
			j.violation("machine %s (%s) has no serving certificate %s after the last fault", m.ID, m.name, j.quiet())
		}
	}
	j.mu.Lock()
	kept := maps.Clone(j.kept)
	j.mu.Unlock()
	for _, n := range apiserver.List[*corev1.Node](w.API, "/nodes", "") {
		if kept[n.Name] == "E7" && !names[n.Name] {
			continue // the agent has said that it does not know whose Node it is, and that somebody has to delete it
		}
		mark := slices.IndexFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == cluster.TaintToBeDeleted })
		if mark >= 0 {
			if at, err := strconv.ParseInt(n.Spec.Taints[mark].Value, 10, 64); err == nil && time.Since(time.Unix(at, 0)) < drainLasts {
				continue // a consolidation is under way
			}
		}
		if n.Spec.ProviderID != "" && !names[n.Name] {
			j.violation("Node %s (%s) has no machine %s after the last fault (nodecleaner told %q)", n.Name, n.Spec.ProviderID, j.quiet(), kept[n.Name])
		}
		if n.Spec.ProviderID != "" && (n.Spec.Unschedulable || mark >= 0) && !took[n.Name] { // a Node that somebody gave to another machine by hand is somebody's
			j.violation("Node %s is cordoned (%t) and marked for its end (%t) %s after the last fault", n.Name, n.Spec.Unschedulable, mark >= 0, j.quiet())
		}
	}
	if need, have := w.needs(), len(names); have > need+need/3+2 {
		j.violation("%d machines for pods that want %d, %s after the last fault", have, need, j.quiet())
	}
	if id, _ := w.joinToken(); id == "" {
		j.violation("there is no join token %s after the last fault", j.quiet())
	}
	j.mu.Lock()
	var late []string
	if n := len(slices.DeleteFunc(slices.Clone(j.secrets), func(at time.Time) bool { return time.Since(at) > w.brisk(time.Hour) })); n > 3 {
		late = append(late, fmt.Sprint(n, " changes of Secrets"))
	}
	// Machines may go for hours: the agent waits with a consolidation until it is worth it (rule D21).
	if at, ok := j.wrote["purchases for pods"]; ok && time.Since(at) < w.brisk(20*time.Minute) {
		late = append(late, "purchases")
	}
	j.mu.Unlock()
	if len(late) > 0 {
		j.violation("an agent still makes %s, %s after the last fault", strings.Join(late, ", "), j.quiet())
	}
}

// told: an agent has said that it keeps an instance by a rule.
func (j *judge) told(rule, instance string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.kept[instance] == rule
}

func (j *judge) quiet() time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	return time.Since(j.lastEnd).Round(time.Minute)
}
