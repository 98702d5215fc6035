package provider_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/providertest"
	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
)

// TestASG runs the suite over the wire: the real SDK with its default chain, an
// emulated AWS behind AWS_ENDPOINT_URL. With groups found by tag and by name, and with what
// the agent's inventory allows to be repeated.
func TestASG(t *testing.T) {
	byTag := asg.Config{ClusterName: "demo"}
	for how, c := range map[string]struct {
		config asg.Config
		repeat bool
	}{
		"by tag":                      {byTag, false},
		"by name":                     {asg.Config{Groups: []string{string(providertest.Workers), "0:3:" + string(providertest.Others)}}, false},
		"by tag, with repeated facts": {byTag, true},
	} {
		t.Run(how, func(t *testing.T) {
			providertest.Suite{
				New: func(t testing.TB) (provider.Provider, providertest.World) {
					w := newWorld(t)
					if c.repeat {
						return repeatingASG{w.connect(t, c.config)}, w
					}
					return w.connect(t, c.config), w
				},
				Settle: func(t testing.TB, w providertest.World) { w.(*world).settle(t) },
			}.Run(t)
		})
	}
}

// reservation is what a generated kubelet configuration keeps back.
var reservation = cluster.Reservation{
	Kube: cluster.Resources{MilliCPU: 70, Memory: 500 << 20}, Eviction: cluster.Resources{Memory: 100 << 20},
	EvictionStoragePercent: 10, MaxPods: 110,
}

// world plays an emulated AWS for the suite.
type world struct {
	*aws.Cloud
	keys  aws.Credentials // of the provider
	admin *autoscaling.Client

	mu      sync.Mutex
	stops   map[string]func() int
	blocked time.Time // since when launches fail; zero: they do not
}

var _ providertest.World = (*world)(nil)

func options() aws.Options {
	return aws.Options{
		LaunchDelay: 2 * time.Millisecond, BootDelay: 5 * time.Millisecond, TerminateDelay: 5 * time.Millisecond,
		HealthCheckDelay: 5 * time.Millisecond, RetryDelay: 10 * time.Millisecond,
	}
}

const (
	tagEnabled = "k8s.io/cluster-autoscaler/enabled"
	tagCluster = "k8s.io/cluster-autoscaler/demo"
)

// empty is a world without groups; its provider's credentials are in the
// environment.
func empty(t testing.TB, opts aws.Options) *world {
	t.Helper()
	c, err := aws.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the world at the end:\n%s", c)
		}
		c.Close()
	})
	root := c.RootCredentials()
	w := &world{Cloud: c, keys: c.IssueCredentials("leader", time.Hour), stops: map[string]func() int{}, admin: autoscaling.NewFromConfig(sdk.Config{
		Region: c.Region(), BaseEndpoint: sdk.String(c.Endpoint()),
		Credentials: credentials.NewStaticCredentialsProvider(root.AccessKeyID, root.SecretAccessKey, ""),
	})}
	none := filepath.Join(t.TempDir(), "none")
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": c.Endpoint(), "AWS_REGION": c.Region(), "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_ACCESS_KEY_ID": w.keys.AccessKeyID, "AWS_SECRET_ACCESS_KEY": w.keys.SecretAccessKey, "AWS_SESSION_TOKEN": w.keys.SessionToken,
		"AWS_CONFIG_FILE": none, "AWS_SHARED_CREDENTIALS_FILE": none, "AWS_PROFILE": "",
	} {
		t.Setenv(name, value)
	}
	_ = os.Unsetenv("AWS_PROFILE")
	return w
}

// newWorld is a world with the suite's groups, and a foreign one.
func newWorld(t testing.TB) *world {
	t.Helper()
	w := empty(t, options())
	w.PutLaunchTemplate(aws.LaunchTemplate{Name: "worker", InstanceType: "m5.large", UserData: "#!/bin/sh\nkubeadm join --token abcdef.0123456789abcdef\n", PublicIP: true, IPv6: true,
		BlockDevices: []aws.BlockDevice{{DeviceName: "/dev/xvda", SizeGiB: 20, VolumeType: "gp3"}}})
	ours := map[string]string{tagEnabled: "", tagCluster: ""}
	for _, g := range []aws.Group{
		{Name: string(providertest.Workers), Min: 0, Max: 10, Desired: 2, Tags: ours},
		{Name: string(providertest.Others), Min: 1, Max: 3, Desired: 1, Tags: ours},
		{Name: "foreign", Min: 0, Max: 3, Desired: 1, Tags: map[string]string{tagEnabled: ""}},
	} {
		g.LaunchTemplate, g.ProtectNew = "worker", true
		if err := w.PutGroup(g); err != nil {
			t.Fatal(err)
		}
	}
	w.settle(t)
	return w
}

// connect makes a provider by the SDK's default chain.
func (w *world) connect(t testing.TB, c asg.Config, opts ...asg.Option) *asg.Provider {
	t.Helper()
	c.VMMemoryOverheadPercent, c.Timeout = 7.5, await.Limit
	p, err := asg.New(context.Background(), c, reservation, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// settle waits until every group has what it wants, or has failed to get it.
func (w *world) settle(t testing.TB) {
	t.Helper()
	await.Empty(t, w.unsettled)
}

func (w *world) unsettled() string {
	for _, g := range w.Groups() {
		life := g.Lifecycles()
		for _, state := range []string{"Pending", "Terminating"} {
			if life[state] > 0 {
				return g.Name + " has " + state
			}
		}
		if dead := slices.IndexFunc(g.Instances, func(i aws.Instance) bool { return i.State != "pending" && i.State != "running" }); dead >= 0 {
			return g.Name + " has not noticed the end of " + g.Instances[dead].ID
		}
		bare := slices.ContainsFunc(g.Instances, func(i aws.Instance) bool { return !i.Protected })
		if life["InService"] == g.Desired || life["InService"] > g.Desired && !bare { // AWS keeps protected ones
			continue
		}
		w.mu.Lock()
		since := w.blocked
		w.mu.Unlock()
		failed := slices.ContainsFunc(g.Activities, func(a aws.Activity) bool {
			return a.Status == "Failed" && !since.IsZero() && a.Start.After(since)
		})
		if !failed || life["InService"] > g.Desired {
			return g.Name + " has not what it wants"
		}
	}
	for _, i := range w.Instances() {
		if i.State == "pending" || i.State == "shutting-down" {
			return i.ID + " is " + i.State
		}
	}
	return ""
}

func (w *world) Target(id cluster.GroupID) int {
	g, ok := w.Group(string(id))
	if !ok {
		return -1
	}
	return g.Desired
}

func (w *world) Alive(id cluster.GroupID) []cluster.InstanceID {
	var out []cluster.InstanceID
	g, _ := w.Group(string(id))
	for _, i := range g.Instances {
		if (i.State == "pending" || i.State == "running") && !strings.HasPrefix(i.Lifecycle, "Terminat") {
			out = append(out, providerID(i))
		}
	}
	slices.Sort(out)
	return out
}

func providerID(i aws.Instance) cluster.InstanceID {
	return cluster.InstanceID("aws:///" + i.Zone + "/" + i.ID)
}

func shortID(id cluster.InstanceID) string { return string(id)[strings.LastIndex(string(id), "/")+1:] }

func (w *world) Foreign(testing.TB) cluster.InstanceID { return w.Alive("foreign")[0] }

func (w *world) ForeignAlive(id cluster.InstanceID) bool {
	return slices.Contains(w.Alive("foreign"), id)
}

func (w *world) Node(id cluster.InstanceID) cluster.Node {
	i, _ := w.Instance(shortID(id))
	return cluster.Node{
		Name: cluster.NodeName(i.PrivateDNS), ProviderID: string(providerID(i)),
		Addresses: []string{i.PrivateIP, i.PublicIP, i.IPv6, i.PrivateDNS},
	}
}

func (w *world) SetTarget(id cluster.GroupID, n int) {
	_, err := w.admin.SetDesiredCapacity(context.Background(), &autoscaling.SetDesiredCapacityInput{
		AutoScalingGroupName: sdk.String(string(id)), DesiredCapacity: sdk.Int32(int32(n))})
	if err != nil {
		panic(err)
	}
}

func (w *world) Kill(id cluster.InstanceID) {
	if err := w.TerminateInstance(shortID(id)); err != nil {
		panic(err)
	}
}

func (w *world) Vanish(id cluster.GroupID) {
	_, err := w.admin.DeleteAutoScalingGroup(context.Background(), &autoscaling.DeleteAutoScalingGroupInput{
		AutoScalingGroupName: sdk.String(string(id)), ForceDelete: sdk.Bool(true)})
	if err != nil {
		panic(err)
	}
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		if _, ok := w.Group(string(id)); !ok {
			return
		}
	}
}

func (w *world) block(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.blocked = time.Time{}
	if on {
		w.blocked = time.Now()
	}
}

func (w *world) Quota(_ testing.TB, on bool) {
	w.block(on)
	if on {
		w.Cloud.Quota(1)
	} else {
		w.Cloud.Quota(0)
	}
}

// fault arms or disarms one fault by name.
func (w *world) fault(name string, on bool, f aws.Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if stop := w.stops[name]; stop != nil {
		stop()
		delete(w.stops, name)
	}
	if on {
		w.stops[name] = w.Inject(f)
	}
}

func (w *world) Throttle(_ testing.TB, on bool) {
	w.fault("throttle", on, aws.Fault{Kind: aws.Throttle})
}

func (w *world) Expire(_ testing.TB, on bool) {
	if on {
		w.ExpireKey(w.keys.AccessKeyID)
	} else {
		w.RestoreKey(w.keys.AccessKeyID)
		w.fault("expire", false, aws.Fault{})
	}
}

func (w *world) RefuseDeletes(_ testing.TB, on bool) {
	w.fault("refuse", on, aws.Fault{Action: "TerminateInstanceInAutoScalingGroup", Kind: aws.Forbidden})
}

// BreakRead leaves Workers one machine short, so that its scaling activities are
// asked for, and makes that call fail.
func (w *world) BreakRead(t testing.TB, on bool) {
	if on {
		w.NoCapacity("*", "*")
		w.SetTarget(providertest.Workers, 3)
	}
	w.fault("activities", on, aws.Fault{Action: "DescribeScalingActivities", Kind: aws.ServerError500})
}
