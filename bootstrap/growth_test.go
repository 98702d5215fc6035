package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
	discoveryfake "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"crypto/x509"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/drawn"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/kubetest"
)

// growing is a cluster whose machines read what is published and join with it.
type growing struct {
	t      *testing.T
	client *fake.Clientset
	rng    *rand.Rand

	mu       sync.Mutex
	target   int
	machines map[cluster.InstanceID]*growingMachine
	next     int
	seen     []cluster.NodeGroup // the inventory, which lags behind the cloud
	gone     map[cluster.InstanceID]bool
	held     string    // by the sink
	down     time.Time // until when the API server does not answer
	lost     int       // answers to writes that are lost
	busy     time.Time // when a machine that had not joined was there at last
	faults   []string
	joins    int
	failed   int
	growths  Growths
}

type growingMachine struct {
	created time.Time
	joined  bool
}

// machineWindow is how long a machine may take; the slowest take less.
const machineWindow = 25 * time.Minute

func (g *growing) chance(percent int) bool { return g.rng.IntN(100) < percent }

func (g *growing) between(from, to time.Duration) time.Duration {
	return from + time.Duration(g.rng.Int64N(int64(to-from)))
}

// Name and Publish make it a sink.
func (g *growing) Name() string { return "the cluster" }

func (g *growing) Publish(_ context.Context, j Join) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.chance(3) {
		return errors.New("throttled")
	}
	g.held = j.Token
	return nil
}

// coming is what the agent asks.
func (g *growing) coming() Coming {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.growths.Coming(g.seen, func(in *cluster.Instance) bool { return g.gone[in.ID] }, time.Now(), machineWindow)
}

// read is one read of the cloud.
func (g *growing) read() {
	g.mu.Lock()
	defer g.mu.Unlock()
	group := cluster.NodeGroup{ID: "workers", Target: g.target}
	g.gone = map[cluster.InstanceID]bool{}
	for id, m := range g.machines {
		group.Instances = append(group.Instances, cluster.Instance{ID: id, Phase: cluster.PhaseRunning, Member: true, Created: m.created})
		g.gone[id] = m.joined
		if !m.joined && time.Since(m.created) <= machineWindow {
			g.busy = time.Now()
		}
	}
	g.seen = []cluster.NodeGroup{group}
}

// launch starts a machine, which boots, reads, installs and joins.
func (g *growing) launch(ctx context.Context) {
	g.mu.Lock()
	g.next++
	id := cluster.InstanceID("aws:///a/i-" + strconv.Itoa(g.next))
	m := &growingMachine{created: time.Now()}
	g.machines[id] = m
	boot, install, dies := g.between(30*time.Second, 4*time.Minute), g.between(5*time.Second, 2*time.Minute), g.chance(4)
	g.mu.Unlock()
	time.Sleep(boot)
	if dies {
		return
	}
	token := ""
	for token == "" {
		if ctx.Err() != nil || time.Since(m.created) > machineWindow-5*time.Minute {
			g.fault("%s found no token in %s", id, time.Since(m.created))
			return
		}
		time.Sleep(5 * time.Second)
		g.mu.Lock()
		token = g.held
		g.mu.Unlock()
	}
	time.Sleep(install)
	for g.isDown() {
		time.Sleep(5 * time.Second)
	}
	s, err := g.client.Tracker().Get(corev1.SchemeGroupVersion.WithResource("secrets"), "kube-system", secretPrefix+token[:idLength])
	if err != nil {
		g.fault("%s, launched %s ago, finds its token gone", id, time.Since(m.created))
		return
	}
	if why := usable(s.(*corev1.Secret), time.Now(), Config{}); why != "" || string(s.(*corev1.Secret).Data[keySecret]) != token[idLength+1:] {
		g.fault("%s finds its token of no use: %s", id, why)
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	m.joined = true
	g.joins++
}

func (g *growing) fault(format string, args ...any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.faults = append(g.faults, fmt.Sprintf(format, args...))
}

func (g *growing) isDown() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return time.Now().Before(g.down)
}

// react makes the API server fail at times, and the controller manager sign.
func (g *growing) react() {
	g.client.PrependReactor("*", "*", func(a k8stesting.Action) (bool, runtime.Object, error) {
		g.mu.Lock()
		defer g.mu.Unlock()
		if time.Now().Before(g.down) {
			g.failed++
			return true, nil, errors.New("the API server does not answer")
		}
		if create, ok := a.(k8stesting.CreateAction); ok && a.GetResource().Resource == "secrets" {
			s := create.GetObject().(*corev1.Secret)
			s.CreationTimestamp = metav1.Now()
			time.AfterFunc(g.between(200*time.Millisecond, 5*time.Second), func() { signInfo(g.client) })
		}
		if verb := a.GetVerb(); (verb == "create" || verb == "delete" || verb == "update") && a.GetResource().Resource == "secrets" && g.chance(5) {
			// It is done, and the answer is lost.
			g.lost++
			tracker, gvr := g.client.Tracker(), a.GetResource()
			switch a := a.(type) {
			case k8stesting.UpdateAction: // a creation is one, too
				if verb == "create" {
					_ = tracker.Create(gvr, a.GetObject(), a.GetNamespace()) // it may be there
				} else {
					_ = tracker.Update(gvr, a.GetObject(), a.GetNamespace())
				}
			case k8stesting.DeleteAction:
				_ = tracker.Delete(gvr, a.GetNamespace(), a.GetName())
			}
			return true, nil, errors.New("the answer is lost")
		}
		return false, nil, nil
	})
}

// signInfo is sign without a test, and past the reactors.
func signInfo(client *fake.Clientset) {
	maps, secrets := corev1.SchemeGroupVersion.WithResource("configmaps"), corev1.SchemeGroupVersion.WithResource("secrets")
	o, err := client.Tracker().Get(maps, "kube-public", "cluster-info")
	if err != nil {
		return
	}
	info := o.(*corev1.ConfigMap).DeepCopy()
	list, err := client.Tracker().List(secrets, corev1.SchemeGroupVersion.WithKind("Secret"), "kube-system")
	if err != nil {
		return
	}
	for key := range info.Data {
		if strings.HasPrefix(key, "jws-") {
			delete(info.Data, key)
		}
	}
	for _, s := range list.(*corev1.SecretList).Items {
		info.Data["jws-kubeconfig-"+string(s.Data[keyID])] = signature(s, info.Data["kubeconfig"])
	}
	_ = client.Tracker().Update(maps, info, "kube-public")
}

// service starts an agent that knows nothing of what the last one did.
func (g *growing) service(cert *x509.Certificate) (stop func()) {
	log := logrus.New()
	log.SetOutput(io.Discard)
	s := New(Config{Tokens: TokensGrowth, TokenTTL: 24 * time.Hour, TokenGroups: []string{WorkersGroup}}, Deps{Client: kubetest.Client(g.client), Log: log.WithField("service", "bootstrap"),
		Coming: g.coming, Sinks: []Sink{g}, Certificate: func(context.Context) (*x509.Certificate, error) { return cert, nil }})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, func() {}) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			g.t.Error(err)
		}
	}
}

// lives tells whether any token of the agent's can be used.
func (g *growing) lives() bool {
	list, err := g.client.Tracker().List(corev1.SchemeGroupVersion.WithResource("secrets"), corev1.SchemeGroupVersion.WithKind("Secret"), "kube-system")
	if err != nil {
		g.t.Error(err)
		return false
	}
	for _, s := range list.(*corev1.SecretList).Items {
		if usable(&s, time.Now(), Config{}) == "" {
			return true
		}
	}
	return false
}

// TestThousandGrowths: machines come in a thousand growths, by the agent's decision or a
// person's, while the API server fails, answers are lost, agents are started anew and
// machines die. No machine finds its token expired or gone, no token lives longer than one
// TTL after the last machine has joined (or was given up), none is left at the end.
func TestThousandGrowths(t *testing.T) {
	growths := 1000
	if testing.Short() {
		growths = 100
	}
	seed := drawn.Seed(t)
	cert := certificate(t)
	synctest.Test(t, func(t *testing.T) {
		g := &growing{t: t, client: fake.NewClientset(infoMap(cert, "https://api.example.com:6443")), rng: rand.New(rand.NewPCG(seed, 1)), machines: map[cluster.InstanceID]*growingMachine{}, busy: time.Now()}
		g.client.Discovery().(*discoveryfake.FakeDiscovery).FakedServerVersion = &version.Info{GitVersion: "v1.36.3"}
		g.react()
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		group.Go(func() { g.watch(ctx) })
		restarts, stop := 0, g.service(cert)
		for range growths {
			g.mu.Lock()
			n, gap, early := 1+g.rng.IntN(8), g.between(0, 35*time.Minute), g.chance(30)
			g.target = len(g.machines) + n
			outage, restart := g.chance(15), g.chance(10)
			g.mu.Unlock()
			if early { // a person raises the target, and the cloud takes its time
				time.Sleep(30 * time.Second)
			}
			for range n {
				group.Go(func() { g.launch(ctx) })
			}
			if outage {
				g.mu.Lock()
				g.down = time.Now().Add(g.between(time.Second, 4*time.Minute))
				g.mu.Unlock()
			}
			if restart {
				stop()
				g.mu.Lock()
				away := g.between(0, 3*time.Minute)
				g.mu.Unlock()
				time.Sleep(away)
				stop = g.service(cert)
				restarts++
			}
			time.Sleep(gap)
			g.forget()
		}
		time.Sleep(machineWindow + growthTTL + time.Minute)
		cancel()
		group.Wait()
		left := g.lives()
		stop()
		if len(g.faults) > 0 || left {
			t.Errorf("%d faults, a token is left at the end: %t\n%s", len(g.faults), left, strings.Join(g.faults[:min(len(g.faults), 20)], "\n"))
		}
		if g.joins < 3*growths || g.failed == 0 || g.lost == 0 || restarts == 0 {
			t.Errorf("%d machines joined; %d calls failed, %d answers were lost, %d restarts: the world was too kind", g.joins, g.failed, g.lost, restarts)
		}
		t.Logf("%d growths, %d machines joined, %d calls failed, %d answers were lost, %d restarts", growths, g.joins, g.failed, g.lost, restarts)
	})
}

// forget lets machines go that have joined or died: the cloud's list stays short.
func (g *growing) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for id, m := range g.machines {
		if m.joined && time.Since(m.created) > 10*time.Minute || time.Since(m.created) > machineWindow {
			delete(g.machines, id)
		}
	}
	g.target = len(g.machines)
}

// watch reads the cloud twice a minute and looks whether a token outlives its growth.
func (g *growing) watch(ctx context.Context) {
	for ctx.Err() == nil {
		g.read()
		g.mu.Lock()
		idle := time.Since(g.busy)
		g.mu.Unlock()
		// 30 s for this look's own rhythm.
		if idle > growthTTL+30*time.Second && g.lives() {
			g.fault("a token lives %s after the last machine joined", idle)
		}
		sleep(ctx, 30*time.Second)
	}
}
