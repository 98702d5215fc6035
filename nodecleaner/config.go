package nodecleaner

import (
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/nodecleaner/reaper"
)

// Config is read from AUTOSCALER_NODECLEANER_* (envconfig, nested by package agent).
type Config struct {
	// Enabled switches the service on.
	Enabled bool `envconfig:"ENABLED" default:"true" desc:"Whether Node objects of dead machines are deleted."`
	// Mode is "delete", or "observe" to report which Nodes would be deleted by which rule.
	Mode string `envconfig:"MODE" default:"delete" oneof:"delete,observe" desc:"delete, or observe to report only."`
	// ObserveFirst is the time after its first start in which an agent only observes (M2); 0:
	// none. The state file keeps the time of the first start.
	ObserveFirst time.Duration `envconfig:"OBSERVE_FIRST" default:"24h" range:"0s..8760h" desc:"How long after its first start the agent only reports; 0: not at all."`
	// SightInterval is the least time between the two reads of the cloud that prove an
	// instance gone (G).
	SightInterval time.Duration `envconfig:"SIGHT_INTERVAL" default:"60s" range:"1s..1h" desc:"Least time between the two reads that prove an instance gone."`
	// GoneGrace is how long the Node of a terminated instance must be not Ready (L1).
	GoneGrace time.Duration `envconfig:"GONE_GRACE" default:"0s" range:"0s..168h" desc:"How long the Node of a terminated instance must be not Ready."`
	// SentGrace is the same for an absent instance that a scale-down removed.
	SentGrace time.Duration `envconfig:"SENT_GRACE" default:"60s" range:"0s..168h" desc:"The same for an instance that a scale-down removed and that is no longer listed."`
	// Grace is the same for an absent instance that no scale-down removed.
	Grace time.Duration `envconfig:"GRACE" default:"10m" range:"0s..168h" desc:"The same for an instance that no scale-down removed."`
	// KnownFor is the age from which the absence of an instance is believed in a cloud that
	// goes on listing terminated instances (EC2): a read without a younger instance lags. An
	// instance that was removed by a scale-down needs no age.
	KnownFor time.Duration `envconfig:"KNOWN_FOR" default:"1h" range:"0s..168h" desc:"Age from which the absence of an instance is believed where a cloud lists terminated ones."`
	// MaxShare is the share of managed Nodes that may be gone at once without a
	// scale-down (B2); one Node always may.
	MaxShare float64 `envconfig:"MAX_SHARE" default:"0.2" range:"0..1" desc:"Share of the managed Nodes that may be gone at once without a scale-down."`
	// MassHold is how long terminated instances above MaxShare are held (B2, B4).
	MassHold time.Duration `envconfig:"MASS_HOLD" default:"10m" range:"0s..168h" desc:"How long deletions above that share are held."`
	// FreezeFor is the time without deletions after an interruption of our own view (B3) and
	// after the last of several failed reads of the cloud (B6).
	FreezeFor time.Duration `envconfig:"FREEZE_FOR" default:"5m" range:"0s..168h" desc:"Time without deletions after an outage of the API server or of the cloud."`
	// UnledgeredEvery is the least time between deletions of Nodes that no
	// scale-down removed (B5).
	UnledgeredEvery time.Duration `envconfig:"UNLEDGERED_EVERY" default:"10s" range:"0s..24h" desc:"Least time between deletions of Nodes that no scale-down removed."`
	// BreakErrors failed reads of the cloud within BreakWithin stop deletions for FreezeFor
	// (B6); 0: never.
	BreakErrors int           `envconfig:"BREAK_ERRORS" default:"5" range:"0..1000000" desc:"So many failed reads of the cloud stop deletions; 0: never."`
	BreakWithin time.Duration `envconfig:"BREAK_WITHIN" default:"10m" range:"0s..168h" desc:"The time within which they have to fail."`
	// DetachFor is how long a Node with the out-of-service taint waits for its volumes
	// to be detached (N4); Kubernetes' own limit is six minutes.
	DetachFor time.Duration `envconfig:"DETACH_FOR" default:"6m" range:"0s..168h" desc:"How long a Node out of service waits for its volumes."`
	// CloudController is "auto" (while a cloud controller manager renews its Lease the mode
	// is observe, C1) or "ignore" (its node controller is known not to run).
	CloudController string `envconfig:"CLOUD_CONTROLLER" default:"auto" oneof:"auto,ignore" desc:"auto: only report while a cloud controller manager is at work; ignore: delete all the same."`
}

// The modes.
const (
	ModeDelete  = reaper.ModeDelete
	ModeObserve = reaper.ModeObserve
)

// The values of CloudController.
const (
	CloudControllerAuto   = "auto"
	CloudControllerIgnore = "ignore"
)

// silence is the longest pause between two rounds after which the memory is still trusted:
// four times the longest sleep of the loop.
const silence = 4 * idleTick

// Policy is the part of c that package reaper decides by.
func (c Config) Policy() reaper.Policy {
	return reaper.Policy{SightInterval: c.SightInterval, GoneGrace: c.GoneGrace, SentGrace: c.SentGrace, Grace: c.Grace,
		KnownFor: c.KnownFor, MaxShare: c.MaxShare, MassHold: c.MassHold, FreezeFor: c.FreezeFor,
		UnledgeredEvery: c.UnledgeredEvery, DetachFor: c.DetachFor, BreakErrors: c.BreakErrors, BreakWithin: c.BreakWithin,
		Silence: silence, Observe: c.Mode == ModeObserve, ObserveFirst: c.ObserveFirst}
}
