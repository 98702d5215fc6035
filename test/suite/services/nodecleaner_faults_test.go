package services

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	agentinventory "github.com/autoscaler-agent/autoscaler-agent/agent/inventory"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/convert"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
	"github.com/autoscaler-agent/autoscaler-agent/nodecleaner"
	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/controlplane"
)

// pace is how fast a ranch lives.
type pace struct {
	nodecleaner.Config
	reads    time.Duration // between reads of the cloud
	pause    time.Duration // how long the API server stands still
	patience time.Duration // with a dead Node once nothing is in the way
}

// scaled has fractions of a second where an operator's cluster has minutes: the API
// server's outage of three minutes and a freeze of five become one of four seconds and a
// freeze of 1.5. TestReaperOutage plays them as they are.
func scaled() pace {
	const sight = 300 * time.Millisecond
	return pace{Config: nodecleaner.Config{Mode: nodecleaner.ModeDelete, SightInterval: sight, SentGrace: sight, Grace: 500 * time.Millisecond, KnownFor: 500 * time.Millisecond,
		MaxShare: 0.2, MassHold: 500 * time.Millisecond, FreezeFor: 1500 * time.Millisecond, UnledgeredEvery: 50 * time.Millisecond, BreakErrors: 5, BreakWithin: 3 * time.Second,
		DetachFor: time.Minute, CloudController: nodecleaner.CloudControllerAuto}, reads: sight, pause: 4 * time.Second, patience: await.Limit}
}

// ranch is a cluster on an emulated AWS that the reaper watches through the real
// provider, the real inventory and the real observer. Its machines are Node objects only.
type ranch struct {
	t        *testing.T
	pace     pace
	cp       *controlplane.ControlPlane
	cloud    *aws.Cloud
	admin    *autoscaling.Client
	lens     *lens
	cleaner  *nodecleaner.Service
	stateDir string

	mu       sync.Mutex
	nodes    map[string]string // by name, the instance of a Node
	gone     map[string]bool   // instances that the test took away without a trace
	byTest   map[string]bool   // Nodes that the test deleted
	murdered []string          // Nodes that were deleted while their instance existed
}

// lens is the provider that the inventory looks through: it counts reads and can be
// turned to another cloud.
type lens struct {
	mu    sync.Mutex
	now   provider.Provider
	reads int
}

func (l *lens) turn(p provider.Provider) {
	l.mu.Lock()
	l.now = p
	l.mu.Unlock()
}

func (l *lens) Groups(ctx context.Context) ([]cluster.NodeGroup, error) {
	l.mu.Lock()
	p := l.now
	l.mu.Unlock()
	groups, err := p.Groups(ctx)
	l.mu.Lock()
	l.reads++
	l.mu.Unlock()
	return groups, err
}

// Instances asks the cloud that is looked at now.
func (l *lens) Instances(ctx context.Context, ids ...cluster.InstanceID) (map[cluster.InstanceID]cluster.Testimony, error) {
	l.mu.Lock()
	p := l.now
	l.mu.Unlock()
	return provider.Ask(ctx, p, ids...)
}

func (l *lens) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reads
}

func (l *lens) Resize(context.Context, cluster.GroupID, int, int) error { return nil }

func (l *lens) Delete(context.Context, cluster.GroupID, ...cluster.InstanceID) error { return nil }

// connect makes the real provider for a cloud, at another endpoint if one is given.
func connect(t *testing.T, c *aws.Cloud, endpoint string) provider.Provider {
	t.Helper()
	keys := c.RootCredentials()
	none := filepath.Join(t.TempDir(), "none")
	if endpoint == "" {
		endpoint = c.Endpoint()
	}
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": endpoint, "AWS_REGION": c.Region(), "AWS_EC2_METADATA_DISABLED": "true", "AWS_SESSION_TOKEN": "",
		"AWS_ACCESS_KEY_ID": keys.AccessKeyID, "AWS_SECRET_ACCESS_KEY": keys.SecretAccessKey,
		"AWS_CONFIG_FILE": none, "AWS_SHARED_CREDENTIALS_FILE": none, "AWS_PROFILE": "",
	} {
		t.Setenv(name, value)
	}
	p, err := asg.New(t.Context(), asg.Config{ClusterName: "demo", VMMemoryOverheadPercent: 7.5, Timeout: 2 * time.Second}, cluster.Reservation{MaxPods: 110})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// openCloud starts an AWS with one group of n machines that nobody heals: what dies
// stays dead.
func openCloud(t *testing.T, account string, n int) *aws.Cloud {
	t.Helper()
	c, err := aws.New(aws.Options{Region: "eu-west-1", AccountID: account, MaxPage: 4, Seed: uint64(account[0]),
		LaunchDelay: time.Millisecond, BootDelay: time.Millisecond, TerminateDelay: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("account %s, seed %d, at the end:\n%s", account, c.Seed(), c)
		}
		c.Close()
	})
	c.PutLaunchTemplate(aws.LaunchTemplate{Name: "workers", InstanceType: "m5.large", UserData: "#!/bin/sh\n"})
	group := aws.Group{Name: "workers", Max: n, Desired: n, LaunchTemplate: "workers", KeepTags: true,
		Tags: map[string]string{"k8s.io/cluster-autoscaler/enabled": "", "k8s.io/cluster-autoscaler/demo": ""}}
	if err := c.PutGroup(group); err != nil {
		t.Fatal(err)
	}
	await.True(t, "all instances run", func() bool {
		g, _ := c.Group("workers")
		return g.Lifecycles()["InService"] == n
	})
	group.SuspendedProcesses = []string{"Launch", "HealthCheck", "ReplaceUnhealthy", "AZRebalance"}
	if err := c.PutGroup(group); err != nil {
		t.Fatal(err)
	}
	return c
}

func newRanch(t *testing.T, cp *controlplane.ControlPlane, machines int, p pace) *ranch {
	if err := cp.Client().CoreV1().Nodes().DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	r := &ranch{t: t, pace: p, cp: cp, cloud: openCloud(t, "111111111111", machines), lens: &lens{}, stateDir: t.TempDir(),
		nodes: map[string]string{}, gone: map[string]bool{}, byTest: map[string]bool{}}
	r.lens.turn(connect(t, r.cloud, ""))
	keys := r.cloud.RootCredentials()
	r.admin = autoscaling.NewFromConfig(sdk.Config{Region: r.cloud.Region(), BaseEndpoint: sdk.String(r.cloud.Endpoint()),
		Credentials: credentials.NewStaticCredentialsProvider(keys.AccessKeyID, keys.SecretAccessKey, "")})
	for _, i := range r.cloud.Instances() {
		node(t, cp, i.PrivateDNS, "aws:///"+i.Zone+"/"+i.ID, corev1.ConditionTrue)
		r.nodes[i.PrivateDNS] = i.ID
	}
	r.watch()
	r.start()
	return r
}

// start runs the reaper as the agent wires it.
func (r *ranch) start() {
	t := r.t
	client := agentClient(t, r.cp)
	shared := kube.NewInformers(client, convert.Strip)
	reads := agentinventory.New(r.lens, r.pace.reads, r.pace.reads, 2*time.Second, quiet("inventory"))
	observer, err := observe.New(observe.Config{Fast: time.Second, Slow: time.Second, Timeout: 2 * time.Second, StaleAfter: time.Second,
		Schedulers: []string{"default-scheduler"}}, client, shared, reads, quiet("observe"))
	if err != nil {
		t.Fatal(err)
	}
	r.cleaner = nodecleaner.New(r.pace.Config, nodecleaner.Deps{Client: client, Informers: shared, Inventory: reads, Witness: r.lens,
		Log: quiet("nodecleaner"), StateDir: r.stateDir, Blind: observer.Stale})
	ctx, cancel := context.WithCancel(context.Background())
	observer.Start(ctx)
	var loops sync.WaitGroup
	loops.Go(func() { // the agent's Lease is what asks in the product
		for ctx.Err() == nil {
			short, stop := context.WithTimeout(ctx, 300*time.Millisecond)
			if _, err := r.cp.Client().Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(short); err == nil {
				observer.APIServerAnswered()
			}
			<-time.After(100 * time.Millisecond)
			stop()
		}
	})
	loops.Go(func() { _ = reads.Run(ctx, func() {}) }) // it never fails
	loops.Go(func() {
		if err := r.cleaner.Run(ctx, func() {}); err != nil {
			t.Errorf("the service ended with %v", err)
		}
	})
	t.Cleanup(func() {
		cancel()
		loops.Wait()
		shared.Wait()
	})
}

// watch is the witness of the test: it compares every deletion with the cloud's own
// truth, which no fault distorts.
func (r *ranch) watch() {
	factory := informers.NewSharedInformerFactory(r.cp.Client(), 0)
	_, err := factory.Core().V1().Nodes().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: func(o any) {
		if unknown, ok := o.(cache.DeletedFinalStateUnknown); ok {
			o = unknown.Obj
		}
		n := o.(*corev1.Node)
		id := n.Spec.ProviderID[strings.LastIndexByte(n.Spec.ProviderID, '/')+1:]
		i, there := r.cloud.Instance(id)
		r.mu.Lock()
		defer r.mu.Unlock()
		if there && i.State != "terminated" && !r.gone[id] && !r.byTest[n.Name] {
			r.murdered = append(r.murdered, fmt.Sprintf("%s (%s is %s)", n.Name, id, i.State))
		}
	}})
	if err != nil {
		r.t.Fatal(err)
	}
	stop := make(chan struct{})
	factory.Start(stop)
	factory.WaitForCacheSync(stop)
	r.t.Cleanup(func() { close(stop); factory.Shutdown() })
}

// exists asks the API server, which a test may have stopped: then it does.
func (r *ranch) exists(name string) bool {
	_, err := r.cp.Client().CoreV1().Nodes().Get(r.t.Context(), name, metav1.GetOptions{})
	return !apierrors.IsNotFound(err)
}

// mute makes a Node what the node controller makes of one whose kubelet is silent.
func (r *ranch) mute(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		r.taint(t, name, corev1.TaintNodeUnreachable, true)
		setReady(t, r.cp, name, corev1.ConditionUnknown)
	}
}

func (r *ranch) taint(t *testing.T, name, key string, on bool) {
	t.Helper()
	nodes := r.cp.Client().CoreV1().Nodes()
	var last error
	for range 10 {
		n, err := nodes.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(x corev1.Taint) bool { return x.Key == key })
		if on {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
		}
		if _, last = nodes.Update(t.Context(), n, metav1.UpdateOptions{}); last == nil {
			return
		}
	}
	t.Fatal(last)
}

// pick takes the names of n Ready Nodes that no part of the test has used, from the zone
// where fewest are not Ready.
func (r *ranch) pick(t *testing.T) string {
	t.Helper()
	list, err := r.cp.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	down, ready := map[string]int{}, map[string][]string{}
	for _, n := range list.Items {
		i, _ := r.cloud.Instance(r.nodes[n.Name])
		if n.Status.Conditions[0].Status == corev1.ConditionTrue {
			ready[i.Zone] = append(ready[i.Zone], n.Name)
		} else {
			down[i.Zone]++
		}
	}
	zones := slices.SortedFunc(maps.Keys(ready), func(a, b string) int { return down[a] - down[b] })
	if len(zones) == 0 {
		t.Fatal("no Ready Node is left to kill")
	}
	return ready[zones[0]][0]
}

// kill terminates a Ready Node's instance and silences its kubelet.
func (r *ranch) kill(t *testing.T) (name string) {
	t.Helper()
	name = r.pick(t)
	if err := r.cloud.TerminateInstance(r.nodes[name]); err != nil {
		t.Fatal(err)
	}
	r.mute(t, name)
	return name
}

// looks waits until the reaper has looked at the cloud n times more.
func (r *ranch) looks(t *testing.T, n int) {
	t.Helper()
	want := r.lens.count() + n
	await.True(t, fmt.Sprintf("%d more reads of the cloud", n), func() bool { return r.lens.count() >= want })
}

func (r *ranch) reaped(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		began := time.Now()
		for r.exists(name) {
			if time.Since(began) > r.pace.patience {
				t.Fatalf("dead Node %s stays: %+v", name, r.cleaner.Explain(name))
			}
			<-time.After(20 * time.Millisecond)
		}
	}
}

// safe fails the test when anything that lives has lost its Node.
func (r *ranch) safe(t *testing.T) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.murdered) > 0 {
		t.Errorf("live Nodes were deleted: %v", r.murdered)
		r.murdered = nil
	}
}

// stateless is a proxy before the cloud that takes the state out of every instance, as
// AWS has been seen to answer.
func stateless(t *testing.T, c *aws.Cloud) string {
	t.Helper()
	to, err := url.Parse(c.Endpoint())
	if err != nil {
		t.Fatal(err)
	}
	state := regexp.MustCompile(`(?s)<instanceState>.*?</instanceState>`)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(to)
			p.Out.Host = p.In.Host // it is signed
		},
		ModifyResponse: func(a *http.Response) error {
			body, err := io.ReadAll(a.Body)
			body = state.ReplaceAll(body, nil)
			a.Body, a.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			a.Header.Set("Content-Length", strconv.Itoa(len(body)))
			return err
		},
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	return server.URL
}

// testReaperFaults: whatever the cloud answers and whatever stops, no Node is deleted
// whose instance exists, and none stays whose instance is gone once the fault is over.
func testReaperFaults(t *testing.T, cp *controlplane.ControlPlane) {
	r := newRanch(t, cp, 22, scaled())
	alive := r.oddities(t)
	for _, part := range []struct {
		name  string
		begin func(t *testing.T) (end func())
	}{
		{"no fault", func(*testing.T) func() { return func() {} }},
		{"empty list of instances", r.inject(aws.Fault{Service: "ec2", Action: "DescribeInstances", Kind: aws.EmptyList})},
		{"empty list of groups", r.inject(aws.Fault{Service: "autoscaling", Action: "DescribeAutoScalingGroups", Kind: aws.EmptyList})},
		{"half a list", r.inject(aws.Fault{Action: "Describe*", Kind: aws.ShortList})},
		{"partial page", r.inject(aws.Fault{Action: "Describe*", Kind: aws.PartialPage})},
		{"403", r.inject(aws.Fault{Kind: aws.Forbidden})},
		{"partitioned from the cloud", r.inject(aws.Fault{Kind: aws.ConnectionReset})},
		{"nil state", func(t *testing.T) func() { return r.through(connect(t, r.cloud, stateless(t, r.cloud))) }},
		{"stale region", func(*testing.T) func() {
			r.cloud.StaleReads(time.Hour)
			return func() { r.cloud.StaleReads(0) }
		}},
		{"wrong account", func(t *testing.T) func() {
			return r.through(connect(t, openCloud(t, "222222222222", 4), "")) // its group has our group's name, and is complete
		}},
	} {
		t.Run(part.name, func(t *testing.T) {
			end := sync.OnceFunc(part.begin(t))
			t.Cleanup(end)
			dead := r.kill(t)
			r.looks(t, 4)
			r.safe(t)
			end()
			began := time.Now()
			r.reaped(t, dead)
			t.Logf("the dead Node went %s after the fault; the live ones stay", time.Since(began).Round(10*time.Millisecond))
			r.safe(t)
		})
	}
	t.Run("the taint is stripped", r.stripped)
	t.Run("made anew between the sights", r.twin)
	t.Run("volumes", r.volumes)
	t.Run("restore", r.restore)
	t.Run("API server paused", r.paused)
	for _, name := range alive {
		if !r.exists(name) {
			t.Errorf("Node %s is gone and its instance is not", name)
		}
	}
	r.safe(t)
}

func (r *ranch) inject(f aws.Fault) func(*testing.T) func() {
	return func(*testing.T) func() {
		stop := r.cloud.Inject(f)
		return func() { stop() }
	}
}

func (r *ranch) through(p provider.Provider) func() {
	r.lens.mu.Lock()
	was := r.lens.now
	r.lens.mu.Unlock()
	r.lens.turn(p)
	return func() { r.lens.turn(was) }
}

// oddities are Nodes that look as dead as can be, of instances that are not gone: one is
// stopped, one reboots, one waits in a lifecycle hook with the taint of a scale-down, and
// of one only the kubelet is silent.
func (r *ranch) oddities(t *testing.T) []string {
	t.Helper()
	var names []string
	next := func() (name, id string) {
		name = r.pick(t)
		r.mute(t, name)
		names = append(names, name)
		return name, r.nodes[name]
	}
	stopped, id := next()
	if err := r.cloud.StopInstance(id); err != nil {
		t.Fatal(err)
	}
	_, id = next()
	if err := r.cloud.Reboot(id); err != nil {
		t.Fatal(err)
	}
	waits, id := next()
	r.taint(t, waits, cluster.TaintToBeDeleted, true)
	_, err := r.admin.PutLifecycleHook(t.Context(), &autoscaling.PutLifecycleHookInput{AutoScalingGroupName: sdk.String("workers"), LifecycleHookName: sdk.String("goodbye"),
		LifecycleTransition: sdk.String("autoscaling:EC2_INSTANCE_TERMINATING"), HeartbeatTimeout: sdk.Int32(3600)})
	if err == nil {
		_, err = r.admin.TerminateInstanceInAutoScalingGroup(t.Context(), &autoscaling.TerminateInstanceInAutoScalingGroupInput{
			InstanceId: sdk.String(id), ShouldDecrementDesiredCapacity: sdk.Bool(true)})
	}
	if err != nil {
		t.Fatal(err)
	}
	await.True(t, "Terminating:Wait", func() bool { i, _ := r.cloud.Instance(id); return i.Lifecycle == "Terminating:Wait" })
	next()
	await.True(t, "the stopped machine's Node is marked", func() bool {
		n, err := r.cp.Client().CoreV1().Nodes().Get(t.Context(), stopped, metav1.GetOptions{})
		return err == nil && slices.ContainsFunc(n.Spec.Taints, func(x corev1.Taint) bool { return x.Key == "node.cloudprovider.kubernetes.io/shutdown" })
	})
	return names
}

// stripped is what the seed's script misses: a restarted Cluster Autoscaler takes its
// taints from all Nodes, and the machine leaves no trace.
func (r *ranch) stripped(t *testing.T) {
	name := r.pick(t)
	r.taint(t, name, cluster.TaintToBeDeleted, true)
	id := cluster.InstanceID("")
	for seen := range r.cleaner.Memory().Seen {
		if strings.HasSuffix(string(seen), r.nodes[name]) {
			id = seen
		}
	}
	await.True(t, "the ledger knows", func() bool { return r.cleaner.Memory().Seen[id].Sent })
	r.mu.Lock()
	r.gone[r.nodes[name]] = true
	r.mu.Unlock()
	if err := r.cloud.Vanish(r.nodes[name]); err != nil {
		t.Fatal(err)
	}
	r.mute(t, name)
	r.taint(t, name, cluster.TaintToBeDeleted, false)
	r.reaped(t, name)
}

// twin: a machine is terminated, and once that has been seen its Node is made anew under
// the same name for a machine that lives, as silent as the old one.
func (r *ranch) twin(t *testing.T) {
	nodes := r.cp.Client().CoreV1().Nodes()
	heir := r.pick(t)
	r.mu.Lock()
	r.byTest[heir] = true
	r.mu.Unlock()
	if err := nodes.Delete(t.Context(), heir, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	name := r.kill(t)
	await.True(t, "a first sight", func() bool {
		return !r.cleaner.Memory().Watch[cluster.NodeName(name)].First.IsZero() || !r.exists(name)
	})
	if err := nodes.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	i, _ := r.cloud.Instance(r.nodes[heir])
	again := node(t, r.cp, name, "aws:///"+i.Zone+"/"+i.ID, corev1.ConditionUnknown)
	r.nodes[name] = i.ID
	r.mute(t, name)
	r.looks(t, 8)
	if n, err := nodes.Get(t.Context(), name, metav1.GetOptions{}); err != nil || n.UID != again.UID {
		t.Errorf("the Node that was made anew: %v", err)
	}
	r.taint(t, name, corev1.TaintNodeUnreachable, false)
	setReady(t, r.cp, name, corev1.ConditionTrue)
	r.safe(t)
}

// volumes: the Node of a terminated machine is put out of service first and goes when its
// last volume is detached.
func (r *ranch) volumes(t *testing.T) {
	name, pv := r.pick(t), "pv-of-the-dead"
	attachments := r.cp.Client().StorageV1().VolumeAttachments()
	_, err := attachments.Create(t.Context(), &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "va-of-the-dead"},
		Spec: storagev1.VolumeAttachmentSpec{Attacher: "test.example.net", NodeName: name, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.cloud.TerminateInstance(r.nodes[name]); err != nil {
		t.Fatal(err)
	}
	r.mute(t, name)
	await.True(t, "out of service", func() bool {
		n, err := r.cp.Client().CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
		return err == nil && slices.ContainsFunc(n.Spec.Taints, func(x corev1.Taint) bool { return x.Key == corev1.TaintNodeOutOfService })
	})
	r.looks(t, 2)
	if !r.exists(name) || r.cleaner.Explain(name).Rule != "N4" {
		t.Errorf("the Node does not wait for its volume: %+v", r.cleaner.Explain(name))
	}
	if err := attachments.Delete(t.Context(), "va-of-the-dead", metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	r.reaped(t, name)
}

// restore brings a Node back from the manifest that was kept of it.
func (r *ranch) restore(t *testing.T) {
	name := r.pick(t)
	if _, err := r.cp.Client().CoreV1().Nodes().Patch(t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"labels":{"example.net/rack":"7"}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := r.cloud.TerminateInstance(r.nodes[name]); err != nil {
		t.Fatal(err)
	}
	r.mute(t, name)
	r.reaped(t, name)
	kept, err := nodecleaner.Manifests(r.stateDir)
	i := slices.IndexFunc(kept, func(k nodecleaner.Kept) bool { return k.Name == name })
	if err != nil || i < 0 {
		t.Fatalf("kept %v: %v", kept, err)
	}
	how := nodecleaner.Restoring{Client: agentClient(t, r.cp), Lives: func(context.Context, string, string) (bool, string) { return false, "it is gone" }}
	if _, err := nodecleaner.Restore(t.Context(), how, kept[i]); err == nil {
		t.Error("the Node of a dead machine came back unasked")
	}
	how.Force = true
	done, err := nodecleaner.Restore(t.Context(), how, kept[i])
	if err != nil || done.Action != "created" || !slices.Contains(done.Labels, "example.net/rack") {
		t.Errorf("%+v %v", done, err)
	}
	r.reaped(t, name) // and is reaped again: its machine is still gone
}

// paused: the API server stands still for longer than the freeze, and when it is back
// every Node is Unknown. Nothing is deleted before the freeze is over and the kubelets
// are heard; then the one that died meanwhile goes.
func (r *ranch) paused(t *testing.T) {
	list, err := r.cp.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	dead := r.pick(t)
	var awake []string
	for _, n := range list.Items {
		if n.Name != dead && n.Status.Conditions[0].Status == corev1.ConditionTrue {
			awake = append(awake, n.Name)
		}
	}
	if err := r.cp.PausePart(controlplane.APIServer); err != nil {
		t.Fatal(err)
	}
	if err := r.cloud.TerminateInstance(r.nodes[dead]); err != nil {
		t.Error(err)
	}
	<-time.After(r.pace.pause)
	if err := r.cp.ResumePart(controlplane.APIServer); err != nil {
		t.Fatal(err)
	}
	r.mute(t, append([]string{dead}, awake...)...)
	back := time.Now()
	for time.Since(back) < r.pace.FreezeFor/2 {
		if !r.exists(dead) {
			t.Errorf("a Node was deleted %s after the outage", time.Since(back))
			break
		}
		<-time.After(20 * time.Millisecond)
	}
	if v := r.cleaner.Explain(dead); v.Deletes {
		t.Errorf("%+v", v)
	}
	r.looks(t, 3)
	r.safe(t)
	for _, name := range awake {
		setReady(t, r.cp, name, corev1.ConditionTrue)
	}
	r.reaped(t, dead)
	t.Logf("the API server stood still for %s; the dead Node went %s after it was back, with a freeze of %s", r.pace.pause, time.Since(back).Round(time.Millisecond), r.pace.FreezeFor)
	r.safe(t)
}
