package bootstrap

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// machineTokenTTL is how long the token of one machine lives: as long as a machine may
// take to be built, to boot, to install what its image lacks and to join.
const machineTokenTTL = time.Hour

// machineLabelValue marks the tokens of single machines: the published one is chosen among
// those with tokenLabelValue.
const machineLabelValue = "machine"

// TokensFor returns a minter of join tokens for single machines: what leaks from one
// machine's user data opens the door for an hour, and its Secret says which machine it
// was for. cfg has been validated.
func TokensFor(pool *Pool, cfg Config) func(ctx context.Context, machine string) (string, error) {
	cfg.TokenTTL = min(cfg.TokenTTL, machineTokenTTL)
	return func(ctx context.Context, machine string) (string, error) {
		s, err := pool.make(ctx, func(id string) (*corev1.Secret, error) {
			s, err := mint(id, time.Now(), cfg)
			if err != nil {
				return nil, err
			}
			s.Labels = map[string]string{TokenLabel: machineLabelValue}
			s.Annotations = map[string]string{MachineAnnotation: machine}
			s.Data[keyDescription] = []byte("autoscaler-agent: for machine " + machine)
			return s, nil
		})
		if err != nil {
			return "", fmt.Errorf("mint a join token for %s: %w", machine, err)
		}
		return string(s.Data[keyID]) + "." + string(s.Data[keySecret]), nil
	}
}

// learnEvery is how often all IDs are looked at: an operator makes tokens, too.
const learnEvery = 10 * time.Minute

// revokeUsed deletes the tokens of single machines whose Node has become Ready since:
// kubeadm needs a token no longer than that, and one that is read from a machine's user
// data later, or from the cloud after the machine is gone, opens nothing. Tokens that have
// ended go too, which makes their IDs free. What cannot be read or written now is looked at
// again in the next round, and expires by itself.
func (s *Service) revokeUsed(ctx context.Context) {
	if leads, _ := s.deps.MayAct(); !leads {
		s.learnt = time.Time{} // another leader makes tokens meanwhile
		return
	}
	if time.Since(s.learnt) >= learnEvery {
		if err := s.deps.Pool.readAll(ctx); err != nil {
			s.log.WithError(err).Debug("which tokens of single machines there are cannot be seen")
			return
		}
		s.learnt = time.Now()
	}
	for _, id := range s.deps.Pool.inUse() {
		s.revoke(ctx, id, time.Now())
	}
}

func (s *Service) revoke(ctx context.Context, id string, now time.Time) {
	t, err := s.deps.Client.CoreV1().Secrets(metav1.NamespaceSystem).Get(ctx, secretPrefix+id, metav1.GetOptions{})
	if err != nil || t.Labels[TokenLabel] != machineLabelValue {
		return // it is being made, or what it is shows when the ID is asked for again
	}
	machine := t.Annotations[MachineAnnotation]
	if in := t.Annotations[InstanceAnnotation]; in != "" && t.Annotations[StandingAnnotation] == "" && s.deps.NodeOf != nil {
		machine = s.deps.NodeOf(in) // a machine may have several names, and chooses one
	}
	why := "it has ended"
	if expires(t).After(now) {
		n, err := s.deps.Client.CoreV1().Nodes().Get(ctx, machine, metav1.GetOptions{})
		if machine == "" || err != nil || !joinedWith(n, t) {
			if err != nil && !apierrors.IsNotFound(err) {
				s.log.WithError(err).WithField("node", machine).Debug("whether a machine has joined cannot be seen")
			}
			return
		}
		why = "its machine has joined"
	}
	entry := s.log.WithFields(logrus.Fields{"token": id, "node": machine, "why": why})
	if err := remove(ctx, s.deps.Client, t); err != nil {
		entry.WithError(err).Debug("the token of a single machine cannot be revoked")
		return
	}
	s.deps.Pool.free(id)
	entry.Info("token revoked: " + why)
	s.count("bootstrap_tokens_total", "what", "revoked")
}

// joinedWith tells that a Ready Node was made after the token: an older Node of the name is
// another machine's.
func joinedWith(n *corev1.Node, token *corev1.Secret) bool {
	return !n.CreationTimestamp.Before(&token.CreationTimestamp) && slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// Attested is a machine that has proven which instance it is and which key it will ask
// with.
type Attested struct {
	Instance string // provider ID
	Machine  string // the name that its Node will have; empty: not known
	Key      string // SHA-256 of the public key, in hex
}

// attestedTokenTTL is how long the token of an attested machine lives: it asks when it is
// about to join.
const attestedTokenTTL = 15 * time.Minute

// TokenForAttested returns a minter of join tokens for machines that have attested. One that
// asks again gets the same token while it has most of its life before it. cfg has been
// validated.
func TokenForAttested(pool *Pool, cfg Config) func(context.Context, Attested) (token string, expiry time.Time, err error) {
	cfg.TokenTTL = min(cfg.TokenTTL, attestedTokenTTL)
	return func(ctx context.Context, m Attested) (string, time.Time, error) {
		now := time.Now()
		if s := pool.attested(ctx, m, now); s != nil && expires(s).Sub(now) > cfg.TokenTTL/2 {
			return string(s.Data[keyID]) + "." + string(s.Data[keySecret]), expires(s), nil
		}
		s, err := pool.make(ctx, func(id string) (*corev1.Secret, error) {
			s, err := mint(id, now, cfg)
			if err != nil {
				return nil, err
			}
			s.Labels = map[string]string{TokenLabel: machineLabelValue}
			s.Annotations = map[string]string{InstanceAnnotation: m.Instance, KeyAnnotation: m.Key}
			if m.Machine != "" {
				s.Annotations[MachineAnnotation] = m.Machine
			}
			s.Data[keyDescription] = []byte("autoscaler-agent: for instance " + m.Instance + ", which has attested")
			return s, nil
		})
		if err != nil {
			return "", time.Time{}, fmt.Errorf("mint a join token for %s: %w", m.Instance, err)
		}
		pool.remember(m, string(s.Data[keyID]))
		return string(s.Data[keyID]) + "." + string(s.Data[keySecret]), expires(s), nil
	}
}
