package clients

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/nova"
)

// ErrNoUserData tells that the user data of a group cannot be read from its cloud.
var ErrNoUserData = errors.New("the agent does not read the user data of this cloud's groups")

// UserData reads the user data of a group on EC2 Auto Scaling or Nova; from says where it was.
// instance is the provider ID of one of its machines, whose own version is read where the cloud
// keeps it; empty: that of the next machine. section is groups.yaml's.
func UserData(ctx context.Context, c config.Config, section func(provider string) json.RawMessage, g *cluster.NodeGroup, instance cluster.InstanceID) (text []byte, from string, err error) {
	provider := g.Provider
	if provider == "" {
		provider = c.Provider
	}
	switch provider {
	case "asg":
		return asg.ReadUserData(ctx, c.AWS, g.ID, instance.Last())
	case "nova":
		file, err := nova.UserDataFile(section("nova"), g.ID)
		if err != nil {
			return nil, "", err
		}
		if text, err = os.ReadFile(file); err != nil {
			return nil, "", fmt.Errorf("read the user data: %w", err)
		}
		return text, file, nil
	}
	return nil, "", ErrNoUserData
}
