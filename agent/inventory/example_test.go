package inventory_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/inventory"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/fake"
)

// A failed read returns the error and the last good facts, marked Stale.
func ExampleInventory_Groups() {
	log := logrus.New()
	log.SetOutput(io.Discard)
	cloud := fake.New(time.Now())
	cloud.AddGroup(cluster.NodeGroup{ID: "workers", Max: 5, Target: 2})
	i := inventory.New(cloud, 2*time.Second, 30*time.Second, 25*time.Second, log.WithField("service", "inventory"))

	groups, err := i.Groups(context.Background(), time.Minute)
	fmt.Println(groups[0].ID, groups[0].Target, groups[0].Stale == "", err)
	cloud.Down(errors.New("503 from the API"))
	groups, err = i.Groups(context.Background(), 0)
	fmt.Println(groups[0].ID, groups[0].Target, groups[0].Stale == "", err != nil)
	// Output:
	// workers 2 true <nil>
	// workers 2 false true
}
