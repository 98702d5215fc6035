package priorities

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/yaml"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/convert"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
)

// ConfigMapName is the ConfigMap of Cluster Autoscaler's priority expander; the map is
// its key "priorities".
const (
	ConfigMapName = "cluster-autoscaler-priority-expander"
	dataKey       = "priorities"
)

// Watch watches the priority ConfigMap. An invalid version is reported once, in the
// journal and in an Event, and the last valid one stays in force. Without the ConfigMap
// there are no priorities.
type Watch struct {
	namespace string
	log       *logrus.Entry
	events    record.EventRecorder
	wake      func()
	informer  cache.SharedIndexInformer
	synced    cache.InformerSynced

	mu    sync.Mutex
	tiers []cluster.PriorityTier
	fault string
}

// New builds the watch; Start starts it. wake is called after each change.
func New(client *kube.Client, namespace string, events record.EventRecorder, log *logrus.Entry, wake func()) (*Watch, error) {
	p := &Watch{namespace: namespace, log: log, events: events, wake: wake, fault: notFound(namespace)}
	p.informer = kube.NewInformer(kube.ListWatch(client, client.CoreV1().ConfigMaps(namespace), kube.Named(ConfigMapName)), &corev1.ConfigMap{}, convert.Strip)
	see := func(obj any) {
		if c, ok := obj.(*corev1.ConfigMap); ok && c.Name == ConfigMapName {
			p.changed(c)
		}
	}
	reg, err := p.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    see,
		UpdateFunc: func(_, obj any) { see(obj) },
		DeleteFunc: func(any) { p.set(nil, notFound(namespace)) },
	})
	if err != nil {
		return nil, fmt.Errorf("watch priorities: %w", err)
	}
	p.synced = reg.HasSynced
	err = p.informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) {
		if apierrors.IsForbidden(err) {
			p.fail("it may not be watched (kubectl apply -f rbac.yaml): " + err.Error())
		}
	})
	if err != nil {
		return nil, fmt.Errorf("watch priorities: %w", err)
	}
	return p, nil
}

func notFound(namespace string) string {
	return fmt.Sprintf("ConfigMap %s/%s does not exist", namespace, ConfigMapName)
}

// syncTimeout is how long a start waits for the ConfigMap. Without it the next expander
// decides: a ConfigMap that may not be read must not keep the agent from starting.
const syncTimeout = 10 * time.Second

// Start starts the watch and waits up to syncTimeout for the ConfigMap. It does nothing
// on a nil Watch.
func (p *Watch) Start(ctx context.Context) {
	if p == nil {
		return
	}
	go p.informer.RunWithContext(ctx)
	bounded, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	cache.WaitForCacheSync(bounded.Done(), p.synced)
}

// Current returns the priorities in force, and the fault of the newest version ("":
// none).
func (p *Watch) Current() ([]cluster.PriorityTier, string) {
	if p == nil {
		return nil, ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tiers, p.fault
}

func (p *Watch) changed(c *corev1.ConfigMap) {
	tiers, err := parse(c.Data)
	if err != nil {
		if p.fail(err.Error()) && p.events != nil {
			p.events.Eventf(c, corev1.EventTypeWarning, "PriorityConfigMapInvalid", "%v; the last good priorities stay in force", err)
		}
		return
	}
	p.set(tiers, "")
}

// fail records a fault and keeps the last valid priorities. It reports whether the fault
// is new.
func (p *Watch) fail(why string) bool {
	fault := fmt.Sprintf("ConfigMap %s/%s: %s", p.namespace, ConfigMapName, why)
	p.mu.Lock()
	fresh := p.fault != fault
	p.fault = fault
	p.mu.Unlock()
	if fresh {
		p.log.WithField("why", why).Warn("invalid priorities, the last valid ones stay in force: " + fault)
		p.wake()
	}
	return fresh
}

func (p *Watch) set(tiers []cluster.PriorityTier, fault string) {
	p.mu.Lock()
	p.tiers, p.fault = tiers, fault
	p.mu.Unlock()
	if fault != "" {
		p.log.WithField("why", fault).Warn("no priorities are set")
	} else {
		p.log.Infof("%d priorities are in force", len(tiers))
	}
	p.wake()
}

// Read reads the ConfigMap once, for a command that watches nothing.
func Read(ctx context.Context, client *kube.Client, namespace string) ([]cluster.PriorityTier, string) {
	c, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, ConfigMapName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, notFound(namespace)
	}
	var tiers []cluster.PriorityTier
	if err == nil {
		tiers, err = parse(c.Data)
	}
	if err != nil {
		return nil, fmt.Sprintf("ConfigMap %s/%s: %v", namespace, ConfigMapName, err)
	}
	return tiers, ""
}

// parse reads the data of the ConfigMap: key "priorities", YAML of a whole number to a
// list of regular expressions. The tiers come highest first.
func parse(data map[string]string) ([]cluster.PriorityTier, error) {
	text, ok := data[dataKey]
	if !ok {
		return nil, fmt.Errorf("it has no key %q", dataKey)
	}
	if strings.TrimSpace(text) == "" {
		return nil, fmt.Errorf("key %q is empty: write for example 10: [\".*\"]", dataKey)
	}
	var raw map[string][]string
	if err := yaml.UnmarshalStrict([]byte(text), &raw); err != nil {
		return nil, fmt.Errorf("key %q is not YAML of priorities and lists of expressions: %w", dataKey, err)
	}
	var tiers []cluster.PriorityTier
	for _, key := range slices.Sorted(maps.Keys(raw)) {
		n, err := strconv.Atoi(key)
		if err != nil {
			return nil, fmt.Errorf("priority %q is not a whole number", key)
		}
		for _, pattern := range raw[key] {
			if _, err := regexp.Compile(pattern); err != nil {
				return nil, fmt.Errorf("priority %d: %q is not a regular expression: %w", n, pattern, err)
			}
		}
		tiers = append(tiers, cluster.PriorityTier{Priority: n, Patterns: raw[key]})
	}
	slices.SortFunc(tiers, func(a, b cluster.PriorityTier) int { return b.Priority - a.Priority })
	return tiers, nil
}
