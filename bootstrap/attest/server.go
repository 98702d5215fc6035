package attest

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sync/singleflight"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// Machine is an instance that has proven who it is.
type Machine struct {
	Instance cluster.InstanceID
	Group    cluster.GroupID
	// Names are those that its Node may have.
	Names []string
	// Key is the SHA-256 of the public key that its kubelet will ask with, in hex.
	Key string
}

// Token is a join token for one machine.
type Token struct {
	Value   string // id.secret
	Expires time.Time
}

// Joined is what is known of an instance's join.
type Joined struct {
	Node string // that carries its provider ID or its name; empty: none
	Key  string // that a certificate was issued to; empty: none
}

// Deps is what the listener works with. All are needed but Attested, Metrics, StateDir and STS.
type Deps struct {
	// Groups returns the managed groups, read at most maxAge ago.
	Groups func(ctx context.Context, maxAge time.Duration) ([]cluster.NodeGroup, error)
	// Joined tells whether an instance has joined.
	Joined func(cluster.Instance) (Joined, error)
	// Attested is the key that an instance was attested with at another leader, as far as its token
	// lives; empty: none is known. nil: there is no other leader.
	Attested func(context.Context, cluster.InstanceID) (key string, err error)
	// Mint makes a token for a machine, or returns the one that lives.
	Mint func(context.Context, Machine) (Token, error)
	// Clusters are the hashes of the cluster's CAs.
	Clusters func(context.Context) ([]string, error)
	// MayAct tells whether this agent leads.
	MayAct  func() (bool, string)
	Log     *logrus.Entry
	Metrics interface {
		Count(name string, labels ...string)
	}
	// StateDir is where it is kept who was attested; empty: in memory only.
	StateDir string
	// STS is the URL to reach STS at; empty: the region's own. The signature is checked
	// against the region's own name in any case.
	STS string
}

// Ages of the inventory.
const (
	freshEnough = 30 * time.Second // of an inventory that lists the instance
	justNow     = time.Second      // of one that does not
)

// Server is the listener.
type Server struct {
	cfg        Config
	deps       Deps
	challenges *challenges
	limits     *limits
	ledger     *ledger
	sts        *sts
	asked      asked
	perMachine singleflight.Group
	now        func() time.Time

	mu      sync.Mutex
	refetch time.Time // of the last read for an instance that was not listed

	certMu   sync.Mutex
	cert     *tls.Certificate
	certRead [2]time.Time
}

// New makes a listener. cfg has been validated.
func New(cfg Config, deps Deps) (*Server, error) {
	c, err := newChallenges()
	if err != nil {
		return nil, err
	}
	return &Server{cfg: cfg, deps: deps, challenges: c, limits: newLimits(), ledger: openLedger(deps.StateDir, deps.Log),
		sts: newSTS(cfg.Host(), deps.STS), now: time.Now}, nil
}

// Run listens until ctx ends. A listener that cannot be opened, and a certificate that
// cannot be read, are tried again: the rest of the agent does not depend on them.
func (s *Server) Run(ctx context.Context, beat func()) error {
	said := ""
	for ctx.Err() == nil {
		beat()
		err := s.serve(ctx, beat)
		if err != nil && ctx.Err() == nil && err.Error() != said {
			said = err.Error()
			s.deps.Log.WithField("why", said).Error("machines cannot attest")
		}
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Second):
		}
	}
	return nil
}

func (s *Server) serve(ctx context.Context, beat func()) error {
	if _, err := s.certificate(nil); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", s.cfg.Listen)
	if err != nil {
		return fmt.Errorf("listen for attestations: %w (AUTOSCALER_BOOTSTRAP_ATTEST_LISTEN)", err)
	}
	s.deps.Log.WithField("address", listener.Addr().String()).Info("machines can attest")
	return s.Serve(ctx, listener, beat)
}

// Serve answers at a listener until ctx ends.
func (s *Server) Serve(ctx context.Context, listener net.Listener, beat func()) error {
	server := s.httpServer()
	done := make(chan error, 1)
	go func() {
		done <- server.ServeTLS(newFairListener(listener, s.limits, s.now, func() { s.count("A0") }), "", "")
	}()
	tick := time.NewTicker(10 * time.Second)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return fmt.Errorf("listen for attestations: %w", err)
		case <-tick.C:
			beat()
		case <-ctx.Done():
			_ = server.Close() // the machine tries again at another leader
			<-done
			return nil
		}
	}
}

func (s *Server) httpServer() *http.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/challenge", s.challenge)
	mux.HandleFunc("POST /v1/join", s.join)
	return &http.Server{
		ErrorLog: log.New(io.Discard, "", 0), // handshakes of scanners are no news
		Handler:  mux, ReadHeaderTimeout: handshakeLimit, ReadTimeout: handshakeLimit, WriteTimeout: answerLimit, IdleTimeout: idleLimit,
		MaxHeaderBytes: maxHeader, TLSConfig: &tls.Config{MinVersion: tls.VersionTLS13, GetCertificate: s.certificate},
	}
}

func (s *Server) challenge(w http.ResponseWriter, r *http.Request) {
	if v := s.admits(r); v.Rule != "" {
		s.refuse(w, r, v, "")
		return
	}
	nonce, err := s.challenges.issue(s.now())
	if err != nil {
		s.refuse(w, r, Verdict{Rule: "A2", Why: err.Error(), Later: true}, "")
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	w.Header().Set("Cache-Control", "no-store")
	fmt.Fprintln(w, nonce)
}

// admits judges A0 but for the allowance of all.
func (s *Server) admits(r *http.Request) Verdict {
	if !s.limits.request(r.RemoteAddr, s.now()) {
		return Verdict{Rule: "A0", Why: "too many requests from this address", Later: true}
	}
	if leads, why := s.deps.MayAct(); !leads {
		return Verdict{Rule: "A0", Why: "this agent does not lead: " + why, Later: true}
	}
	return Verdict{}
}

func (s *Server) join(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), answerLimit-time.Second)
	defer cancel()
	token, instance, v := s.attest(ctx, r)
	if v.Rule != "" {
		s.refuse(w, r, v, instance)
		return
	}
	s.asked.note(instance, r.RemoteAddr, Asked{At: s.now()})
	w.Header().Set("Content-Type", "text/plain")
	w.Header().Set("Cache-Control", "no-store")
	fmt.Fprintf(w, "JOIN_TOKEN=%s\nJOIN_TOKEN_EXPIRES=%s\n", token.Value, token.Expires.UTC().Format(time.RFC3339))
	s.count("served")
}

// attest goes through all rules. instance is "" until STS has told it.
func (s *Server) attest(ctx context.Context, r *http.Request) (token Token, instance string, v Verdict) {
	no := func(rule string, later bool, format string, args ...any) (Token, string, Verdict) {
		return Token{}, instance, Verdict{Rule: rule, Why: fmt.Sprintf(format, args...), Later: later}
	}
	if v := s.admits(r); v.Rule != "" {
		return Token{}, "", v
	}
	req, err := parse(r.Body, s.cfg.Region)
	if err != nil {
		return no("A1", false, "%s", err)
	}
	from, v := s.beforeSTS(ctx, req, r.RemoteAddr)
	if v.Rule != "" {
		return Token{}, "", v
	}
	caller, v := s.ask(ctx, req, from)
	if v.Rule != "" {
		return Token{}, "", v
	}
	facts := Facts{Now: s.now(), Partition: s.cfg.partition(), Account: s.cfg.Account, Roles: s.cfg.Roles, MaxAge: freshEnough, Window: s.cfg.Window, Key: req.Key}
	if instance, v = InstanceOf(caller, facts); v.Rule != "" {
		return Token{}, "", v
	}
	// One machine at a time, so that of two keys one is the first.
	answer, err, _ := s.perMachine.Do(instance+" "+req.Key, func() (any, error) {
		return s.admit(ctx, instance, facts)
	})
	if err != nil {
		if refused, ok := errors.AsType[*refusal](err); ok {
			return Token{}, instance, refused.Verdict
		}
		return no("A14", true, "%s", err)
	}
	return answer.(Token), instance, Verdict{}
}

// beforeSTS judges A2 to A4 and takes the allowance, so that STS is not asked in vain.
func (s *Server) beforeSTS(ctx context.Context, req Request, remote string) (*allowance, Verdict) {
	hashes, err := s.deps.Clusters(ctx)
	switch {
	case err != nil:
		return nil, Verdict{Rule: "A3", Why: "the cluster's CA is not known: " + err.Error(), Later: true}
	case !slices.Contains(hashes, req.Cluster):
		return nil, Verdict{Rule: "A3", Why: "the request is for another cluster"}
	case req.skew(s.now()) > maxSkew:
		return nil, Verdict{Rule: "A4", Why: fmt.Sprintf("the machine's clock is off by %s", req.skew(s.now()).Round(time.Second)), Later: true}
	}
	until, why := s.challenges.live(req.Nonce, s.now())
	if why != "" { // before the allowance: a forged challenge must not cost other machines theirs
		return nil, Verdict{Rule: "A2", Why: why}
	}
	from := s.limits.attestation(remote, s.now())
	if from == nil {
		return nil, Verdict{Rule: "A0", Why: "too many machines ask at once", Later: true}
	}
	if why = s.challenges.use(req.Nonce, until, s.now()); why != "" {
		return nil, Verdict{Rule: "A2", Why: why}
	}
	return from, Verdict{}
}

// ask is A5.
func (s *Server) ask(ctx context.Context, req Request, from *allowance) (Caller, Verdict) {
	if !from.enter(ctx) {
		return Caller{}, Verdict{Rule: "A0", Why: "too many questions to STS at once", Later: true}
	}
	defer from.leave()
	caller, err := s.sts.caller(ctx, req)
	if err != nil {
		fault, ok := errors.AsType[*stsError](err)
		return Caller{}, Verdict{Rule: "A5", Why: err.Error(), Later: ok && fault.later}
	}
	return caller, Verdict{}
}

// refusal carries a verdict through an error.
type refusal struct{ Verdict }

func (r *refusal) Error() string { return r.Rule + ": " + r.Why }

// admit judges A9 to A13 and has the token made.
func (s *Server) admit(ctx context.Context, instance string, f Facts) (Token, error) {
	groups, in := s.find(ctx, instance, &f)
	f.Now = s.now()
	if in != nil {
		joined, err := s.deps.Joined(*in)
		if err != nil {
			return Token{}, &refusal{Verdict{Rule: "A12", Why: "who has joined cannot be seen: " + err.Error(), Later: true}}
		}
		f.Node, f.Issued = joined.Node, joined.Key
		if f.Attested, err = s.firstKey(ctx, instance, in.ID); err != nil {
			return Token{}, &refusal{Verdict{Rule: "A13", Why: "with which key the instance was attested cannot be seen: " + err.Error(), Later: true}}
		}
	}
	if v := Decide(instance, f); v.Rule != "" {
		return Token{}, &refusal{v}
	}
	first, err := s.ledger.enter(instance, f.Key, f.Now)
	if err != nil {
		return Token{}, &refusal{Verdict{Rule: "A13", Why: err.Error(), Later: true}}
	}
	if f.Attested = first; first != f.Key {
		return Token{}, &refusal{Decide(instance, f)}
	}
	token, err := s.deps.Mint(ctx, Machine{Instance: in.ID, Group: groups.ID, Names: in.NodeNames, Key: f.Key})
	if err != nil {
		return Token{}, err
	}
	s.deps.Log.WithFields(logrus.Fields{"instance": string(in.ID), "group": string(groups.ID), "expires": token.Expires.UTC().Format(time.RFC3339)}).
		Info("a machine has attested: it gets a join token of its own")
	return token, nil
}

// firstKey is the key that the instance was attested with, here or at another leader.
func (s *Server) firstKey(ctx context.Context, instance string, id cluster.InstanceID) (string, error) {
	if key := s.ledger.key(instance); key != "" || s.deps.Attested == nil {
		return key, nil
	}
	return s.deps.Attested(ctx, id)
}

// find reads the inventory, and reads it anew for an instance that it does not list: a
// machine may be quicker than the last read. Strangers cannot cause such a read, and all
// machines together cause one in a second.
func (s *Server) find(ctx context.Context, instance string, f *Facts) (*cluster.NodeGroup, *cluster.Instance) {
	read := func(age time.Duration) (*cluster.NodeGroup, *cluster.Instance) {
		groups, err := s.deps.Groups(ctx, age)
		f.Groups, f.Fault = groups, ""
		if err != nil {
			f.Fault = err.Error()
		}
		return Find(groups, instance)
	}
	g, in := read(freshEnough)
	if in != nil && g.Stale == "" && s.now().Sub(g.WitnessedAt()) <= freshEnough {
		return g, in
	}
	s.mu.Lock()
	again := s.now().Sub(s.refetch) >= justNow
	if again {
		s.refetch = s.now()
	}
	s.mu.Unlock()
	if again {
		return read(justNow)
	}
	return g, in
}

// refuse answers with the rule. The reason is for machines that have proven who they are,
// and for the journal.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, v Verdict, instance string) {
	status := http.StatusForbidden
	switch {
	case v.Rule == "A0" && v.Later:
		status = http.StatusTooManyRequests
	case v.Later:
		status = http.StatusServiceUnavailable
	case v.Rule == "A1":
		status = http.StatusBadRequest
	}
	if v.Later {
		w.Header().Set("Retry-After", "5")
	}
	w.Header().Set("Connection", "close") // a refused source keeps no place; in HTTP/2 this ends the connection too
	text := v.Rule
	if instance != "" {
		text += " " + v.Why
	}
	s.count(v.Rule)
	s.asked.note(instance, r.RemoteAddr, Asked{Rule: v.Rule, Why: v.Why, At: s.now()})
	entry := s.deps.Log.WithFields(logrus.Fields{"rule": v.Rule, "why": v.Why, "source": r.RemoteAddr, "instance": instance})
	if v.Rule == "A0" {
		entry.Debug("an attestation is refused")
	} else {
		entry.Warn("an attestation is refused")
	}
	http.Error(w, text, status)
}

func (s *Server) count(rule string) {
	if s.deps.Metrics != nil {
		s.deps.Metrics.Count("bootstrap_attestations_total", "rule", rule)
	}
}
