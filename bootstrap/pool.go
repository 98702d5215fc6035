package bootstrap

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
)

// The IDs of the agent's join tokens are a fixed pool, so that units/rbac.yaml can name
// every Secret that the agent may read: RBAC narrows by name alone. An ID is public
// (cluster-info tells it); what is secret of a token is its second part. The first few
// are for the token that is published and those that it supersedes, the others for the
// tokens of single machines that are joining.
const (
	poolPrefix     = "asa"
	poolSize       = 128
	publishedSlots = 4
)

func poolID(n int) string { return fmt.Sprintf("%s%03d", poolPrefix, n) }

// inPool tells whether a token of this ID may be the agent's.
func inPool(id string) bool {
	n, err := strconv.Atoi(strings.TrimPrefix(id, poolPrefix))
	return err == nil && n >= 0 && n < poolSize && id == poolID(n)
}

// PoolNames are the names of all Secrets that the agent's join tokens may be in.
func PoolNames() []string {
	names := make([]string, poolSize)
	for n := range names {
		names[n] = secretPrefix + poolID(n)
	}
	return names
}

// Sample is a join token as the service would make it now, for a dry run.
func Sample(cfg Config, now time.Time) (*corev1.Secret, error) { return mint(poolID(0), now, cfg) }

// Pool hands out the IDs of single machines' tokens, and knows which of them are in use.
type Pool struct {
	client *kube.Client

	mu   sync.Mutex
	used map[string]time.Time // by ID: when the token ends
	next int                  // an ID is used again as late as can be
	made map[Attested]string  // the IDs of attested machines' tokens
	// learnt tells that all IDs were looked at since this agent began to lead: another leader's
	// tokens are in made, too.
	learnt bool
	learns sync.Mutex // held while they are looked at; before mu
}

// NewPool returns a pool of which nothing is known yet: what is in use shows when it is
// asked for.
func NewPool(client *kube.Client) *Pool {
	start, err := rand.Int(rand.Reader, big.NewInt(poolSize-publishedSlots))
	if err != nil {
		start = new(big.Int)
	}
	return &Pool{client: client, used: map[string]time.Time{}, made: map[Attested]string{}, next: int(start.Int64())}
}

// make creates the Secret that mint returns for the first ID that is free.
func (p *Pool) make(ctx context.Context, mint func(id string) (*corev1.Secret, error)) (*corev1.Secret, error) {
	secrets := p.client.CoreV1().Secrets(metav1.NamespaceSystem)
	for range poolSize - publishedSlots {
		id, err := p.reserve(time.Now())
		if err != nil {
			return nil, err
		}
		minted, err := mint(id)
		if err != nil {
			p.free(id)
			return nil, err
		}
		made, err := secrets.Create(ctx, minted, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			// Made before a restart, by another leader, or by somebody else.
			free, looked := p.readSlot(ctx, id, time.Now())
			if looked != nil {
				return nil, looked
			}
			if !free {
				continue
			}
			made, err = secrets.Create(ctx, minted, metav1.CreateOptions{})
		}
		if err != nil {
			p.free(id)
			return nil, err
		}
		p.use(id, expires(made))
		return made, nil
	}
	return nil, p.exhausted(time.Now())
}

// reserve takes a free ID until it is known how long its token lives.
func (p *Pool) reserve(now time.Time) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for range poolSize - publishedSlots {
		id := poolID(publishedSlots + p.next)
		p.next = (p.next + 1) % (poolSize - publishedSlots)
		if until, used := p.used[id]; !used || now.After(until) {
			p.used[id] = now.Add(time.Minute)
			return id, nil
		}
	}
	return "", p.exhaustedLocked(now)
}

func (p *Pool) exhausted(now time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exhaustedLocked(now)
}

func (p *Pool) exhaustedLocked(now time.Time) error {
	first := slices.MinFunc(slices.Collect(maps.Values(p.used)), time.Time.Compare)
	return fmt.Errorf("all %d join tokens for single machines are in use: the next is free when one of these machines is Ready, or in %s",
		poolSize-publishedSlots, max(0, first.Sub(now)).Round(time.Second))
}

func (p *Pool) use(id string, until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used[id] = until
}

func (p *Pool) free(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.used, id)
	maps.DeleteFunc(p.made, func(_ Attested, made string) bool { return made == id })
}

func (p *Pool) remember(m Attested, id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.made, func(_ Attested, made string) bool { return made == id }) // its time has ended
	p.made[m] = id
}

// attested is the token that was made for the machine and still is there; nil: there is
// none.
func (p *Pool) attested(ctx context.Context, m Attested, now time.Time) *corev1.Secret {
	p.mu.Lock()
	id, ok := p.made[m]
	p.mu.Unlock()
	if !ok {
		return nil
	}
	s, err := p.client.CoreV1().Secrets(metav1.NamespaceSystem).Get(ctx, secretPrefix+id, metav1.GetOptions{})
	if err != nil || s.Annotations[InstanceAnnotation] != m.Instance || s.Annotations[KeyAnnotation] != m.Key || usable(s, now, Config{}) != "" {
		return nil
	}
	return s
}

// inUse lists the IDs whose tokens may be there.
func (p *Pool) inUse() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.used))
}

// readSlot learns what stands under an ID, and whether it is free. One of our own tokens that
// has ended makes room; a Secret of somebody else's is left alone, and its ID with it.
func (p *Pool) readSlot(ctx context.Context, id string, now time.Time) (free bool, err error) {
	s, err := p.client.CoreV1().Secrets(metav1.NamespaceSystem).Get(ctx, secretPrefix+id, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		p.free(id)
		return true, nil
	case err != nil:
		return false, err
	case s.Labels[TokenLabel] != machineLabelValue:
		p.use(id, now.Add(machineTokenTTL))
		return false, nil
	case expires(s).After(now) && expires(s).Sub(now) <= maxTokenTTL: // no token of the pool lives longer, an operator's neither: somebody else wrote its end
		p.use(id, expires(s))
		if in, key := s.Annotations[InstanceAnnotation], s.Annotations[KeyAnnotation]; in != "" && key != "" {
			p.remember(Attested{Instance: in, Machine: s.Annotations[MachineAnnotation], Key: key}, id)
		}
		return false, nil
	}
	if err := remove(ctx, p.client, s); err != nil {
		return false, err
	}
	p.free(id)
	return true, nil
}

// readAll looks at every ID of single machines, as a leader has to that made none of them.
func (p *Pool) readAll(ctx context.Context) error {
	p.learns.Lock()
	defer p.learns.Unlock()
	return p.readSlots(ctx)
}

// Forget has the next question look at every ID: this agent begins to lead, and another one has
// made tokens meanwhile.
func (p *Pool) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.learnt = false
}

// KeyOf is the key that a living token of an instance was made for, by whichever leader; empty:
// there is none. The first question of a new leader looks at every ID.
func (p *Pool) KeyOf(ctx context.Context, instance string) (string, error) {
	p.learns.Lock()
	defer p.learns.Unlock()
	p.mu.Lock()
	learnt := p.learnt
	p.mu.Unlock()
	if !learnt {
		if err := p.readSlots(ctx); err != nil {
			return "", err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for m, id := range p.made {
		if m.Instance == instance && now.Before(p.used[id]) {
			return m.Key, nil
		}
	}
	return "", nil
}

// readSlots is readAll; the caller holds learns.
func (p *Pool) readSlots(ctx context.Context) error {
	for n := publishedSlots; n < poolSize; n++ {
		if _, err := p.readSlot(ctx, poolID(n), time.Now()); err != nil {
			return fmt.Errorf("look for tokens of single machines: %w", err)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.learnt = true
	return nil
}

// remove deletes a token as the very object that was read. One that is gone is no error.
func remove(ctx context.Context, client *kube.Client, s *corev1.Secret) error {
	err := client.CoreV1().Secrets(metav1.NamespaceSystem).Delete(ctx, s.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &s.UID, ResourceVersion: &s.ResourceVersion}})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
