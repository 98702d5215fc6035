package bootstrap

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
	"github.com/autoscaler-agent/autoscaler-agent/internal/servingcert"
)

// Metrics counts. Labels are names and values in turn.
type Metrics interface {
	Count(name string, labels ...string)
}

// Deps is what the service works with. Nil MayAct means that this agent may always
// write tokens; nil Metrics are left out.
type Deps struct {
	Client *kube.Client
	// Rest leads to the API server whose certificate must cover the endpoint.
	Rest    *rest.Config
	Log     *logrus.Entry
	Metrics Metrics
	// Pool is shared with TokensFor; nil: one of its own.
	Pool *Pool
	// MayAct tells whether this agent leads. One that does not lead publishes the
	// leader's token and writes none.
	MayAct func() (bool, string)
	// Coming tells which machines have not joined; nil: none ever comes. Only tokens on
	// demand need it (Config.Tokens).
	Coming func() Coming
	// NodeOf names the Node that an instance has become, by its provider ID; empty: none. Nil:
	// tokens for instances end by themselves.
	NodeOf func(providerID string) string
	// Sinks are where join information is published beside the file.
	Sinks []Sink
	// Rehearse tries what was published, as Rehearse does; nil: nobody does.
	Rehearse func(context.Context, Join) []Step
	// Certificate replaces the reading of the API server's certificate.
	Certificate func(context.Context) (*x509.Certificate, error)
}

// Rhythm of the loop.
const (
	roundTimeout  = 30 * time.Second
	longestWait   = time.Minute            // between two rounds; TokenTTL/4 when that is shorter
	lookEvery     = 2 * time.Second        // between two looks at the published file
	firstRetry    = 250 * time.Millisecond // doubles ...
	lastRetry     = 30 * time.Second       // ... up to this
	complainEvery = 10 * time.Minute       // between two lines about the same error
	overlap       = machineTokenTTL        // a superseded token lives on for machines that start with it
)

// errNotSigned is the usual state of the first seconds: the controller manager signs
// cluster-info a moment after the token was made.
var errNotSigned = errors.New("cluster-info is not signed with the token yet: the controller manager's bootstrapsigner does that")

// Service keeps the token and publishes the join information.
type Service struct {
	cfg  Config
	deps Deps
	log  *logrus.Entry

	mu   sync.Mutex
	join Join

	learnt       time.Time // which tokens of single machines there are
	wanted       bool      // machines came in the last round
	lastWanted   time.Time
	rehearsed    string               // the values that were tried last
	sunk         map[string]string    // by sink: what it holds
	asked        map[string]time.Time // by sink: when it was written, or told that it holds it
	complaint    string
	complainedAt time.Time
}

// New returns a service. cfg has been validated, and its TokenGroups are filled.
func New(cfg Config, deps Deps) *Service {
	if deps.MayAct == nil {
		deps.MayAct = func() (bool, string) { return true, "" }
	}
	if deps.Pool == nil {
		deps.Pool = NewPool(deps.Client)
	}
	if deps.Certificate == nil {
		deps.Certificate = func(ctx context.Context) (*x509.Certificate, error) { return servingcert.Fetch(ctx, deps.Rest) }
	}
	return &Service{cfg: cfg, deps: deps, log: deps.Log, sunk: map[string]string{}, asked: map[string]time.Time{}}
}

// Join returns what was last published, and whether anything was.
func (s *Service) Join() (Join, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.join
	j.CAHashes = slices.Clone(j.CAHashes)
	return j, j.Token != ""
}

// Run works until ctx ends and beats after each round.
func (s *Service) Run(ctx context.Context, beat func()) error {
	s.clearResidue()
	tries := 0
	for ctx.Err() == nil {
		wait := min(s.cfg.ttl()/4, longestWait)
		led, _ := s.deps.MayAct()
		err := s.round(ctx)
		if err != nil && ctx.Err() == nil {
			wait = min(wait, firstRetry<<min(tries, 10), lastRetry)
			// Waiting for the signature is the usual course of the first seconds.
			if tries++; !errors.Is(err, errNotSigned) || tries > 5 {
				s.complain(err)
			}
		} else {
			tries, s.complaint = 0, ""
		}
		beat()
		s.rest(ctx, wait, led)
	}
	return nil
}

// rest waits, and ends early when the published file is no longer as it was left, machines begin or
// cease to come, or this agent begins to lead: what the last leader left unfinished is its own now.
func (s *Service) rest(ctx context.Context, wait time.Duration, led bool) {
	left, err := os.Stat(s.cfg.File)
	watched := s.cfg.File != "" && (err == nil || s.onDemand())
	for until := time.Now().Add(wait); ctx.Err() == nil && time.Now().Before(until); {
		sleep(ctx, min(lookEvery, time.Until(until)))
		if s.onDemand() && (s.coming().Machines > 0) != s.wanted {
			return
		}
		if leads, _ := s.deps.MayAct(); leads && !led {
			return
		}
		if !watched {
			continue
		}
		now, err := os.Stat(s.cfg.File)
		if err != nil || left == nil || !os.SameFile(left, now) || now.Mode() != left.Mode() || now.Size() != left.Size() || !now.ModTime().Equal(left.ModTime()) {
			return
		}
	}
}

// complain tells of an error when it is new, and again every complainEvery.
func (s *Service) complain(err error) {
	if text := err.Error(); text != s.complaint || time.Since(s.complainedAt) >= complainEvery {
		s.complaint, s.complainedAt = text, time.Now()
		s.log.WithField("why", text).Warn("join information is not published yet")
	}
}

// round brings token and file to where they should be.
func (s *Service) round(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, roundTimeout)
	defer cancel()
	s.revokeUsed(ctx)
	find := s.token
	if s.onDemand() {
		find = s.tokenOnDemand
	}
	token, err := find(ctx)
	if err != nil {
		return err
	}
	join, err := s.gather(ctx, token)
	if err != nil {
		return err
	}
	return s.publish(ctx, join)
}

// token returns the join token's Secret, renewed or newly made if need be.
func (s *Service) token(ctx context.Context) (*corev1.Secret, error) {
	list, free, err := s.published(ctx)
	if err != nil {
		return nil, fmt.Errorf("find the join token: %w", err)
	}
	now := time.Now()
	leads, why := s.deps.MayAct()
	if leads {
		if err := s.limit(ctx, list, now); err != nil {
			return nil, err
		}
	}
	list = slices.DeleteFunc(list, func(t corev1.Secret) bool { // an operator's is the operator's, until it ends
		return t.Annotations[StandingAnnotation] != "" && usable(&t, now, Config{}) == ""
	})
	current := choose(list, now, s.cfg)
	if !leads {
		if current == nil {
			return nil, fmt.Errorf("find the join token: there is none, and this agent makes none: %s", why)
		}
		return current, nil
	}
	gone, err := s.supersede(ctx, list, current, len(free) == 0, now)
	if err != nil {
		return nil, err
	}
	if current == nil {
		return s.makeToken(ctx, append(free, gone...), now)
	}
	if expires(current).Sub(now) < s.cfg.TokenTTL/2 || regroup(current, s.cfg) {
		return s.renew(ctx, current, now)
	}
	return current, nil
}

// published reads the tokens that are or were published, and tells which IDs are free.
func (s *Service) published(ctx context.Context) (list []corev1.Secret, free []string, err error) {
	for n := range publishedSlots {
		t, err := s.deps.Client.CoreV1().Secrets(metav1.NamespaceSystem).Get(ctx, secretPrefix+poolID(n), metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			free = append(free, poolID(n))
		case err != nil:
			return nil, nil, err
		case t.Labels[TokenLabel] == tokenLabelValue:
			list = append(list, *t)
		}
	}
	return list, free, nil
}

// supersede deletes what current has taken the place of: after the overlap, which leaves
// machines that started with it the time to join, or at once what cannot be used any more.
// Where no ID is free for the next token, the oldest goes before its time. It returns the
// IDs that are free by this.
func (s *Service) supersede(ctx context.Context, list []corev1.Secret, current *corev1.Secret, full bool, now time.Time) (gone []string, err error) {
	oldest := slices.Clone(list)
	slices.SortFunc(oldest, func(a, b corev1.Secret) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	for i := range oldest {
		t := &oldest[i]
		dead := usable(t, now, Config{}) != ""
		replaced := current != nil && t.Name != current.Name && now.Sub(current.CreationTimestamp.Time) >= overlap
		crowded := current == nil && full && len(gone) == 0
		if !dead && !replaced && !crowded {
			continue
		}
		id := strings.TrimPrefix(t.Name, secretPrefix)
		if err := remove(ctx, s.deps.Client, t); err != nil {
			return nil, fmt.Errorf("delete the superseded join token %s: %w", id, err)
		}
		gone = append(gone, id)
		s.log.WithField("token", id).Info("superseded join token deleted")
		s.count("bootstrap_tokens_total", "what", "deleted")
	}
	return gone, nil
}

// makeToken mints the token that is published next.
func (s *Service) makeToken(ctx context.Context, free []string, now time.Time) (*corev1.Secret, error) {
	if len(free) == 0 {
		return nil, fmt.Errorf("make a join token: Secrets %s to %s in kube-system are not the agent's (label %s): remove what stands under these names", secretPrefix+poolID(0), secretPrefix+poolID(publishedSlots-1), TokenLabel)
	}
	cfg := s.cfg
	cfg.TokenTTL = cfg.ttl()
	minted, err := mint(free[0], now, cfg)
	if err != nil {
		return nil, err
	}
	made, err := s.deps.Client.CoreV1().Secrets(metav1.NamespaceSystem).Create(ctx, minted, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("make a join token: %w", err)
	}
	s.log.WithFields(logrus.Fields{"token": free[0], "expires": string(made.Data[keyExpiration])}).Info("join token made")
	s.count("bootstrap_tokens_total", "what", "made")
	return made, nil
}

// limit gives tokens of ours an expiration again that somebody took it from: without
// one they would stand for ever.
func (s *Service) limit(ctx context.Context, tokens []corev1.Secret, now time.Time) error {
	for i := range tokens {
		t := &tokens[i]
		if t.DeletionTimestamp != nil || t.Type != secretType || len(t.Data[keyExpiration]) > 0 || t.Data == nil {
			continue
		}
		s.log.WithField("token", string(t.Data[keyID])).Warn("somebody took the expiration from the join token: it gets one again")
		limited, err := s.renew(ctx, t, now)
		if err != nil {
			return err
		}
		*t = *limited
	}
	return nil
}

// renew moves the expiration of the same token, so that user data which was pasted
// into a launch template keeps working while the agent lives.
func (s *Service) renew(ctx context.Context, token *corev1.Secret, now time.Time) (*corev1.Secret, error) {
	token = token.DeepCopy()
	token.Data[keyExpiration] = expiry(now.Add(s.cfg.ttl()))
	token.Data[keyGroups] = []byte(strings.Join(s.cfg.TokenGroups, ","))
	renewed, err := s.deps.Client.CoreV1().Secrets(metav1.NamespaceSystem).Update(ctx, token, metav1.UpdateOptions{})
	if err != nil {
		return nil, fmt.Errorf("renew join token %s: %w", token.Data[keyID], err)
	}
	s.log.WithFields(logrus.Fields{"token": string(token.Data[keyID]), "expires": string(token.Data[keyExpiration])}).Info("join token renewed")
	s.count("bootstrap_tokens_total", "what", "renewed")
	return renewed, nil
}

// gather collects what a worker needs and checks it as the worker would; nil token: none is
// published now.
func (s *Service) gather(ctx context.Context, token *corev1.Secret) (Join, error) {
	info, err := s.clusterInfo(ctx)
	if err != nil {
		return Join{}, err
	}
	if token != nil {
		if err := signed(info, token); err != nil {
			return Join{}, err
		}
	}
	hashes, err := caHashes(info.ca)
	if err != nil {
		return Join{}, err
	}
	endpoint, source, err := s.endpoint(ctx, info)
	if err != nil {
		return Join{}, err
	}
	cert, err := s.deps.Certificate(ctx)
	if err != nil {
		return Join{}, err
	}
	if err := covered(cert, endpoint, source); err != nil {
		return Join{}, err
	}
	version, err := s.deps.Client.ServerVersion(ctx)
	if err != nil {
		return Join{}, fmt.Errorf("read the API server's version: %w", err)
	}
	join := Join{CAHashes: hashes, Endpoint: endpoint, Kubernetes: version.GitVersion}
	if token != nil {
		join.Token, join.Expires = string(token.Data[keyID])+"."+string(token.Data[keySecret]), expires(token)
	}
	return join, nil
}

// signed tells whether cluster-info is signed with the token.
func signed(info clusterInfo, token *corev1.Secret) error {
	id := string(token.Data[keyID])
	jws, ok := info.signatures[id]
	if !ok {
		return fmt.Errorf("check token %s: %w", id, errNotSigned)
	}
	if err := verify(jws, info.kubeconfig, id, string(token.Data[keySecret])); err != nil {
		// The signer follows a change of cluster-info by a moment.
		return fmt.Errorf("check token %s: %w (%w)", id, errNotSigned, err)
	}
	return nil
}

func (s *Service) count(name string, labels ...string) {
	if s.deps.Metrics != nil {
		s.deps.Metrics.Count(name, labels...)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
