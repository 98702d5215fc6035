package world

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
	"github.com/autoscaler-agent/autoscaler-agent/test/world/apiserver"
	"github.com/autoscaler-agent/autoscaler-agent/test/world/wire"
)

// Options of New.
type Options struct {
	Dir     string // of the agents' files
	Seed    uint64
	Agents  int // 1 to 3; 0: 1
	Groups  []Group
	Env     config.Config // what Load made of the environment; see Environ
	Verbose bool          // the journal is kept whole

	tempo int // see tempoOf; 0: 1
	// controllers: Deployments, DaemonSets, StatefulSets and Jobs are played, Nodes are made by others, and no kubelet's silence counts.
	controllers bool
}

// Group is a node group: an Auto Scaling group of one instance type.
type Group struct {
	Name, Type string
	Min, Max   int
}

// Environ are the variables that every agent of a world has. They are the process's own, so that they are set
// before a world begins.
func Environ() map[string]string {
	return map[string]string{
		"AWS_ENDPOINT_URL": "http://aws.invalid", "AWS_REGION": "us-east-1", "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_SESSION_TOKEN": "", "AWS_CA_BUNDLE": "", "AUTOSCALER_AWS_CLUSTER_NAME": clusterName,
		"AUTOSCALER_SOCKET": "off", "AUTOSCALER_LISTEN": "off", "AUTOSCALER_NODECLEANER_OBSERVE_FIRST": "0s",
		"GOGC": "100", "GOMAXPROCS": "1",
	}
}

const (
	clusterName = "sim"
	apiHost     = "192.168.0.10:6443"
)

// latency is how long a request takes without a fault.
const latency = 3 * time.Millisecond

// World is a cluster, its cloud and its agents, in the bubble in which New was called.
type World struct {
	Options
	API    *apiserver.Server
	Cloud  *aws.Cloud
	Began  time.Time
	fleet  *fleet
	agents []*Agent
	models *models
	ca     *authority
	watch  *judge

	mu     sync.Mutex // of random, and of one model at a time
	random *rand.Rand
	closed bool

	storyMu sync.Mutex
	story   []string
	faults  *faults

	instead atomic.Pointer[http.Handler] // answers in place of the cloud; nil: nobody does
}

// New makes a world in which nothing runs yet but the cluster's own machinery.
func New(o Options) (*World, error) {
	if o.Agents == 0 {
		o.Agents = 1
	}
	w := &World{Options: o, Began: time.Now(), random: rand.New(rand.NewPCG(o.Seed, 0x5151))}
	w.API = apiserver.New(apiserver.Options{Seed: o.Seed, Bookmarks: 5 * time.Minute, BeforeGet: w.renewed})
	w.fleet = &fleet{world: w, machines: map[string]*machine{}, silence: map[string]time.Time{}, conns: map[*oneConn]bool{}}
	w.faults = &faults{world: w}
	w.watch = newJudge(w)
	var err error
	if w.ca, err = newAuthority(); err != nil {
		return nil, err
	}
	w.Cloud, err = aws.New(aws.Options{Seed: o.Seed | 1, LaunchDelay: 5 * time.Second, BootDelay: 10 * time.Second, TerminateDelay: 20 * time.Second, HealthCheckDelay: time.Minute,
		RetryDelay: 30 * time.Second, Jitter: 0.3, Unlistened: true, ReuseIPs: true, OnState: w.fleet.onState})
	if err != nil {
		return nil, err
	}
	keys := w.Cloud.RootCredentials()
	if err := errors.Join(os.Setenv("AWS_ACCESS_KEY_ID", keys.AccessKeyID), os.Setenv("AWS_SECRET_ACCESS_KEY", keys.SecretAccessKey)); err != nil {
		return nil, err
	}
	if w.models, err = newModels(w); err != nil {
		w.Cloud.Close()
		return nil, err
	}
	for _, g := range o.Groups {
		if err := w.PutGroup(g); err != nil {
			w.Cloud.Close()
			return nil, err
		}
	}
	for i := range max(o.Agents, 0) {
		a := &Agent{world: w, name: fmt.Sprint("leader-", i), dir: filepath.Join(o.Dir, fmt.Sprint("leader-", i))}
		if err := a.prepare(); err != nil {
			w.Cloud.Close()
			return nil, err
		}
		w.agents = append(w.agents, a)
	}
	return w, nil
}

// PutGroup makes a group, or changes it.
func (w *World) PutGroup(g Group) error {
	w.Cloud.PutLaunchTemplate(aws.LaunchTemplate{Name: g.Name, InstanceType: g.Type, HTTPTokens: "required", UserData: "#!/bin/sh\n"})
	return w.Cloud.PutGroup(w.groupOf(g, g.Min))
}

func (w *World) groupOf(g Group, desired int) aws.Group {
	return aws.Group{Name: g.Name, Min: g.Min, Max: g.Max, Desired: desired, LaunchTemplate: g.Name, Version: "$Latest", ProtectNew: true, KeepTags: true,
		SuspendedProcesses: []string{"AZRebalance"}, Tags: map[string]string{"k8s.io/cluster-autoscaler/enabled": "", "k8s.io/cluster-autoscaler/" + clusterName: ""}}
}

// Start starts every agent.
func (w *World) Start() {
	for _, a := range w.agents {
		a.Start()
	}
}

// Close ends everything that runs in the world.
func (w *World) Close() {
	for _, a := range w.agents {
		a.Kill()
	}
	for _, a := range w.agents {
		a.wait()
	}
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.API.BreakWatches()
	w.fleet.mu.Lock()
	conns := slices.Collect(maps.Keys(w.fleet.conns))
	w.fleet.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
	}
	w.Cloud.Close()
	time.Sleep(2 * time.Minute) // a request of an earlier life, which nobody waits for, ends by itself
}

// after has do called when some time has passed, one at a time.
func (w *World) after(d time.Duration, do func()) {
	time.AfterFunc(d, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if !w.closed {
			do()
		}
	})
}

// between is a random time; the caller holds w.mu.
func (w *World) between(lo, hi time.Duration) time.Duration {
	return lo + time.Duration(w.random.Int64N(int64(hi-lo)))
}

// Tell writes a line of the story.
func (w *World) Tell(format string, args ...any) {
	w.storyMu.Lock()
	defer w.storyMu.Unlock()
	at := time.Since(w.Began)
	w.story = append(w.story, fmt.Sprintf("%02d:%02d:%02d.%03d ", int(at.Hours()), int(at.Minutes())%60, int(at.Seconds())%60, at.Milliseconds()%1000)+fmt.Sprintf(format, args...))
	if most := 20000; len(w.story) > 2*most {
		w.story = slices.Clone(w.story[most:])
	}
}

// Story is what has happened, the last lines of it.
func (w *World) Story(lines int) string {
	w.storyMu.Lock()
	defer w.storyMu.Unlock()
	return strings.Join(w.story[max(0, len(w.story)-lines):], "\n")
}

// wireOf is a client's own way to everything.
func (w *World) wireOf(a *Agent, fault func(*http.Request) wire.Fault) *wire.Wire {
	judged := func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			after := w.watch.arrives(a, r)
			answer := &answered{ResponseWriter: rw, status: http.StatusOK}
			h.ServeHTTP(answer, r)
			after(answer.status)
		})
	}
	return &wire.Wire{Latency: latency, Fault: fault, Hosts: map[string]wire.Far{
		apiHost: {Handler: judged(w.API), Stream: w.API.Stream}, "aws.invalid": {Handler: judged(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if h := w.instead.Load(); h != nil {
				(*h).ServeHTTP(rw, r)
				return
			}
			w.Cloud.ServeHTTP(rw, r)
		}))}}}
}

// answered keeps the status of an answer.
type answered struct {
	http.ResponseWriter
	status int
}

func (a *answered) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

func (a *answered) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func writeFile(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o600)
}
