package observe_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/sirupsen/logrus/hooks/test"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/inventory"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/convert"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
	cloud "github.com/autoscaler-agent/autoscaler-agent/internal/testing/fake"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/kubetest"
)

// TestForbiddenWatches: a ClusterRole from before LimitRanges, ResourceQuotas and RuntimeClasses were read must
// not keep the agent from starting, nor make its facts old; the journal names each right once.
// Any other watch that is forbidden does both.
func TestForbiddenWatches(t *testing.T) {
	for name, c := range map[string]struct {
		forbidden []string
		starts    bool
	}{
		"an older ClusterRole": {[]string{"limitranges", "resourcequotas", "runtimeclasses"}, true},
		"without DaemonSets":   {[]string{"limitranges", "daemonsets"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			objects := fake.NewClientset(node("a"))
			for _, resource := range c.forbidden {
				objects.PrependReactor("list", resource, func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", nil)
				})
			}
			quiet, journal := test.NewNullLogger()
			log := logrus.NewEntry(quiet)
			client := kubetest.Client(objects)
			o, err := observe.New(observe.Config{StaleAfter: time.Minute, Schedulers: []string{"default-scheduler"}}, client, kube.NewInformers(client, convert.Strip),
				inventory.New(cloud.New(time.Now()), time.Second, time.Minute, time.Minute, log), log)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			o.Start(ctx)
			err = o.WaitForSync(ctx)
			if (err == nil) != c.starts {
				t.Fatalf("sync: %v", err)
			}
			if !c.starts {
				return
			}
			if s := o.Snapshot(); s.Stale != "" || len(s.Nodes) != 1 {
				t.Errorf("stale %q, %d nodes", s.Stale, len(s.Nodes))
			}
			for _, resource := range c.forbidden {
				told := 0
				for _, e := range journal.AllEntries() {
					if e.Level == logrus.WarnLevel && strings.Contains(e.Message, "not allowed to watch "+resource) && strings.Contains(e.Message, "kubectl apply") {
						told++
					}
				}
				if told != 1 {
					t.Errorf("%s: told %d times", resource, told)
				}
			}
		})
	}
}
