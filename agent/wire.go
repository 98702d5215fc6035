package agent

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/sirupsen/logrus"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/autoscaler-agent/autoscaler-agent/agent/act"
	"github.com/autoscaler-agent/autoscaler-agent/agent/capacity"
	"github.com/autoscaler-agent/autoscaler-agent/agent/clients"
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/agent/config/reload"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/election"
	"github.com/autoscaler-agent/autoscaler-agent/agent/election/rollouts"
	"github.com/autoscaler-agent/autoscaler-agent/agent/groups"
	"github.com/autoscaler-agent/autoscaler-agent/agent/history"
	"github.com/autoscaler-agent/autoscaler-agent/agent/inventory"
	"github.com/autoscaler-agent/autoscaler-agent/agent/localapi"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/convert"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/priorities"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/wrap"
	"github.com/autoscaler-agent/autoscaler-agent/agent/report"
	"github.com/autoscaler-agent/autoscaler-agent/agent/statefile"
	"github.com/autoscaler-agent/autoscaler-agent/agent/statusline"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap/attest"
	"github.com/autoscaler-agent/autoscaler-agent/csrsigner"
	"github.com/autoscaler-agent/autoscaler-agent/csrsigner/joined"
	"github.com/autoscaler-agent/autoscaler-agent/internal/flight"
	"github.com/autoscaler-agent/autoscaler-agent/internal/goruntime"
	"github.com/autoscaler-agent/autoscaler-agent/internal/heartbeat"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
	"github.com/autoscaler-agent/autoscaler-agent/internal/supervise"
	"github.com/autoscaler-agent/autoscaler-agent/internal/version"
	"github.com/autoscaler-agent/autoscaler-agent/nodecleaner"
	"github.com/autoscaler-agent/autoscaler-agent/userdata/upgrade"
)

// What is kept of recorded rounds.
const (
	flightBudget = 1 << 20 // bytes of recorded rounds
	flightFiles  = 200     // rounds that did something, on disk
	flightBytes  = 32 << 20
)

// app is the agent at work.
type app struct {
	cfg          config.Config
	log          *logrus.Entry
	identity     string
	started      time.Time
	heartbeats   *heartbeat.Monitor
	metrics      *report.Metrics
	rest         *rest.Config
	client       *kube.Client
	informers    *kube.Informers
	nodes        joined.Nodes
	recorder     record.EventRecorder
	observer     *observe.Observer
	inventory    *inventory.Inventory
	requests     atomic.Int64 // to the cloud, so far
	witness      nodecleaner.Witness
	leadership   *election.Leadership
	rollouts     rollouts.Store
	scaler       *scaler
	cleaner      *nodecleaner.Service   // nil: switched off
	tokens       *bootstrap.Pool        // of single machines; nil: bootstrap is switched off
	server       atomic.Pointer[string] // the API server's version, once it is known
	settings     *groups.Live
	priorities   *priorities.Watch // nil: no expander asks for them
	buffers      *capacity.Buffers
	requested    *capacity.Requests
	signer       *csrsigner.Service // nil: switched off
	attest       *attest.Server     // nil: switched off
	serviceNames []string
	changes      *report.Changes
	loaded       chan struct{} // closed once the caches hold the cluster
	reloader     *reload.Reloader
}

// Run works until ctx ends; then it finishes what it is in and returns nil. An
// error means that the process should be restarted, or that its configuration must
// be mended.
func Run(ctx context.Context, cfg config.Config, logger *logrus.Logger) error {
	goruntime.Loading()
	unlock, err := statefile.Lock(cfg.StateDir)
	if err != nil {
		return err
	}
	defer unlock()
	a, err := wire(ctx, cfg, logger.WithField("service", "agent"))
	if err != nil {
		return err
	}
	watchdog, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		return fmt.Errorf("read watchdog settings: %w", err)
	}
	a.log.WithFields(logrus.Fields{"version": version.Current(), "node": a.identity}).Info("starting")
	defer a.log.Info("stopped")
	a.reloader = &reload.Reloader{Log: logger, Env: config.SeeEnvFile(cfg.EnvFile), Look: a.settings.Look, Fault: a.settings.Fault, Groups: cfg.GroupsFile}
	a.reloader.OnHangup(ctx)
	services := a.services()
	for _, s := range services {
		a.serviceNames = append(a.serviceNames, s.Name)
	}
	return supervise.Supervisor{
		Log: a.log, Heartbeats: a.heartbeats, Watchdog: watchdog, ReadyWithin: time.Minute, Status: a.statusLine().Text, Ready: a.ready,
		Notify: func(state string) {
			if _, err := daemon.SdNotify(false, state); err != nil {
				a.log.WithField("why", err.Error()).Debug("systemd was not told")
			}
		},
	}.Run(ctx, a.early(), services)
}

// wire builds everything and starts nothing.
func wire(ctx context.Context, cfg config.Config, log *logrus.Entry) (*app, error) {
	a := &app{cfg: cfg, log: log, started: time.Now(), heartbeats: &heartbeat.Monitor{}, metrics: report.NewMetrics(), loaded: make(chan struct{}), changes: report.NewChanges(log)}
	var err error
	if a.identity, err = cfg.Identity(); err != nil {
		return nil, err
	}
	if a.rest, err = clients.Rest(cfg, false); err != nil {
		return nil, err
	}
	if a.client, err = clients.Services(a.rest); err != nil {
		return nil, err
	}
	leaseClient, err := clients.Lease(cfg.Lease, a.rest)
	if err != nil {
		return nil, err
	}
	a.informers = kube.NewInformers(a.client, convert.Strip)
	if a.nodes, err = joined.Index(a.informers); err != nil {
		return nil, err
	}
	if a.settings, err = cfg.OpenGroupsFile(a.entry("groups")); err != nil {
		return nil, err
	}
	clouds, err := a.provider(ctx)
	if err != nil {
		return nil, err
	}
	a.witness = witness{clouds}
	cloud := wrap.NewWriteAhead(clouds, func(ctx context.Context) error { return a.leadership.Announce(ctx) })
	a.inventory = inventory.New(cloud, cfg.Observe.Fast, cfg.Observe.Slow, cfg.Observe.Timeout, a.entry("inventory"))
	a.inventory.Requests = a.requests.Load
	a.observer, err = observe.New(cfg.Observe, a.client, a.informers, a.inventory, a.entry("observe"))
	if err != nil {
		return nil, err
	}
	a.observer.ProvisionTime = cfg.Scaling.MaxNodeProvisionTime
	a.leadership = election.New(cfg.Lease, election.Deps{Identity: a.identity, Instance: cmp.Or(cfg.Instance(), rand.Text()[:8]), Client: leaseClient, Log: a.entry("lease"), Heard: a.observer.APIServerAnswered, Writes: cloud,
		Loaded: a.loaded, Leads: a.leads, Notes: a.rollouts.Notes, Noted: a.rollouts.Noted})
	a.rollouts.Changed = func() { a.observer.Wake(observe.Soon) }
	var stop func()
	if a.recorder, stop, err = clients.Recorder(a.rest, a.identity); err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, stop)
	if err := a.wireSettings(); err != nil {
		return nil, err
	}
	if err := a.wireCapacity(); err != nil {
		return nil, err
	}
	a.wireScaler(cloud)
	if cfg.CSR.Enabled {
		if a.signer, err = a.newSigner(); err != nil {
			return nil, err
		}
	}
	a.metrics.Watch(a.state())
	a.attest, err = a.newAttester()
	return a, err
}

// leads is called when this agent begins to lead. Another leader may have made tokens and bought machines meanwhile: the
// pool reads the tokens again, and the scaler takes a round.
func (a *app) leads() {
	if a.tokens != nil {
		a.tokens.Forget()
	}
	a.observer.Wake(observe.Soon)
}

// witness is the cloud as the nodecleaner asks it for instances by their IDs.
type witness struct{ cloud provider.Provider }

func (w witness) Instances(ctx context.Context, ids ...cluster.InstanceID) (map[cluster.InstanceID]cluster.Testimony, error) {
	return provider.Ask(ctx, w.cloud, ids...)
}

// wireSettings lets what an operator changes at run time reach the next round.
func (a *app) wireSettings() (err error) {
	wake := func() { a.observer.Wake(observe.Soon) }
	a.settings.OnChange(func() {
		a.inventory.Refresh()
		wake()
	})
	if plan.UsesPriorities(a.cfg.Scaling.Expander) {
		a.priorities, err = priorities.New(a.client, a.cfg.Lease.Namespace, a.recorder, a.entry("priorities"), wake)
	}
	return err
}

// wireCapacity makes the followers of CapacityBuffers and ProvisioningRequests. An agent that decides only to tell writes no status.
func (a *app) wireCapacity() error {
	client, err := dynamic.NewForConfig(a.rest)
	if err != nil {
		return err
	}
	deps := capacity.Deps{
		Client: a.client, Dynamic: client, Informers: a.informers, Schedulers: a.cfg.Observe.Schedulers, Log: a.entry("capacity"),
		Wake: func() { a.observer.Wake(observe.Soon) },
		MayAct: func() (bool, string) {
			if a.cfg.Scaler.DryRun {
				return false, "dry run"
			}
			return a.leadership.MayAct()
		},
	}
	a.buffers, a.requested = capacity.NewBuffers(deps), capacity.NewRequests(deps)
	return nil
}

// policy is the configured one with what can change at run time.
func (a *app) policy(now time.Time) decision.Policy {
	p := a.cfg.Scaling
	p.Headroom = slices.Concat(a.settings.Headroom(now), a.buffers.Headroom(), a.requested.Headroom())
	p.Priorities, p.PrioritiesFault = a.priorities.Current()
	a.rollouts.Fill(&p)
	return p
}

func (a *app) entry(service string) *logrus.Entry {
	return a.log.Logger.WithField("service", service)
}

// provider makes the cloud's stack, outermost first: Count(Timeout(cloud)).
// agent/act logs each change with its rule and reason.
func (a *app) provider(ctx context.Context) (provider.Provider, error) {
	a.cfg.OnCall = func(action string, took time.Duration, err error) {
		a.requests.Add(1)
		a.metrics.Request(action, took, err)
	}
	if a.cfg.Bootstrap.Enabled {
		cfg := a.cfg.Bootstrap
		cfg.TokenGroups = a.cfg.JoinGroups() // as the published token's
		a.tokens = bootstrap.NewPool(a.client)
		a.cfg.TokenFor = bootstrap.TokensFor(a.tokens, cfg)
	}
	a.cfg.Upgrades = upgrade.NewFollower(a.kubernetes)
	cloud, err := clients.Cloud(ctx, a.cfg, a.settings.Section)
	if err != nil {
		return nil, fmt.Errorf("provider %s: %w", a.cfg.Provider, err)
	}
	cloud = a.settings.Overlay(cloud, a.cfg.Kubelet.Reservation())
	return wrap.Count(wrap.Timeout(cloud, a.cfg.Observe.Timeout), a.metrics.Call), nil
}

// console reads a machine's console for the scaler.
func (a *app) console(ctx context.Context, id cluster.InstanceID) (string, error) {
	return clients.Console(ctx, a.cfg, string(id))
}

func (a *app) wireScaler(cloud provider.Provider) {
	log := a.entry("scaler")
	a.scaler = &scaler{
		cfg: a.cfg.Scaler, policy: a.policy, decided: a.rollouts.Decided, observer: a.observer, inventory: a.inventory, mayAct: a.leadership.MayAct, console: a.console, known: a.known,
		executor: &act.Executor{Client: a.client, Cloud: cloud, Recorder: a.recorder, Log: log, MayAct: a.leadership.MayAct, Until: a.leadership.ActUntil},
		buffers:  a.buffers, requested: a.requested,
		file:     statefile.In(a.cfg.StateDir),
		recorder: flight.New(flightBudget), store: flight.Store{Dir: filepath.Join(a.cfg.StateDir, "flight"), Files: flightFiles, Bytes: flightBytes},
		metrics: a.metrics, history: &history.History{}, days: statefile.HistoryIn(a.cfg.StateDir), log: log, heldLog: report.HeldLog{Log: log}, events: report.Events{Recorder: a.recorder},
	}
	if a.cfg.Scaler.StatusConfigMap && !a.cfg.Scaler.DryRun {
		a.scaler.page = report.NewStatusPage(a.client, a.changes, a.leadership.MayAct)
		a.scaler.page.SettingsFault = a.settings.Fault
	}
	kept, err := a.scaler.file.Load(time.Now())
	if err != nil {
		log.WithField("why", err.Error()).Error("the state of the last run is not usable: timers and backoffs start anew")
	}
	a.scaler.memory = kept.Memory
	if err := a.scaler.days.Load(a.scaler.history, time.Now()); err != nil {
		log.WithField("why", err.Error()).Warn("the history of the last run is not usable: the page begins anew")
	}
	a.inventory.RestoreSpecs(kept.Specs)
	a.observer.RestoreCorrections(kept.Corrections)
}

// early are the services that need no caches.
func (a *app) early() []supervise.Service {
	list := []supervise.Service{{Name: "lease", Budget: time.Minute, Run: a.leadership.Run}, {Name: "groups", Budget: time.Minute, Run: a.settings.Run}}
	api := a.localAPI()
	if a.cfg.Listen != "off" {
		list = append(list, supervise.Service{Name: "metrics", Budget: time.Minute, Run: api.ServeMetrics})
	}
	if a.cfg.Socket != "off" {
		list = append(list, supervise.Service{Name: "socket", Budget: time.Minute, Run: api.ServeSocket})
	}
	return append(list, supervise.Service{Name: "inventory", Budget: 2*a.cfg.Observe.Slow + a.cfg.Observe.Timeout, Run: a.inventory.Run})
}

// localAPI makes the server of what the agent tells on this machine.
func (a *app) localAPI() *localapi.Server {
	return &localapi.Server{
		Config: a.cfg, Node: a.identity, Since: a.started, Services: a.serviceNames, Heartbeats: a.heartbeats, Metrics: a.metrics, Leadership: a.leadership,
		Observer: a.observer, Inventory: a.inventory, Signer: a.signer, Cleaner: a.cleaner, Flight: a.scaler.recorder,
		Policy: a.policy, Memory: a.scaler.remembered, Last: a.scaler.lastPlan, History: a.scaler.history, Unready: a.unready, SettingsFault: a.settings.Fault, Reload: a.reloader.Tell, Known: a.known,
	}
}

// statusLine is what systemd is told of the services that run.
func (a *app) statusLine() *statusline.Line {
	l := &statusline.Line{Config: a.cfg, Changes: a.changes, MayAct: a.leadership.MayAct, Stale: a.observer.Stale, Groups: a.inventory.Last, File: a.settings.File, Fault: a.settings.Fault}
	if a.signer != nil {
		l.Alarm = a.signer.Alarm
	}
	if a.cleaner != nil {
		l.Stopped = a.cleaner.Status
	}
	return l
}

// services lists every service that waits for the caches.
func (a *app) services() []supervise.Service {
	var list []supervise.Service
	if a.cfg.Scaler.Enabled {
		list = append(list, supervise.Service{Name: "scaler", Budget: 2*a.cfg.Scaler.Idle + 2*time.Minute, Run: a.scaler.Run},
			supervise.Service{Name: "buffers", Budget: 2 * time.Minute, Run: a.buffers.Run}, supervise.Service{Name: "requests", Budget: 2 * time.Minute, Run: a.requested.Run})
		if a.scaler.page != nil {
			list = append(list, supervise.Service{Name: "status", Budget: 2 * time.Minute, Run: a.scaler.page.Run})
		}
	}
	return append(list, a.otherServices()...)
}

// ready starts the informers and waits until their lists are here.
func (a *app) ready(ctx context.Context) error {
	other, err := a.leadership.WatchOther(ctx, a.client, func(refused string) {
		a.changes.Say("other lease", refused, "", "no service starts: the Lease of another autoscaler may not be watched (kubectl apply -f rbac.yaml)")
	})
	if err != nil {
		return err
	}
	a.observer.Start(ctx)
	a.priorities.Start(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), other) {
		return fmt.Errorf("wait for the Lease of another autoscaler: %w", context.Cause(ctx))
	}
	if err := a.observer.WaitForSync(ctx); err != nil {
		return err
	}
	close(a.loaded)
	go followVersion(ctx, a.client, a.serverVersion)
	go goruntime.Steady() // the first decision does not wait for the collector
	return nil
}
