package clients

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/nova"
)

var (
	ec2ID    = regexp.MustCompile(`\Ai-[0-9a-f]{8}([0-9a-f]{9})?\z`)
	serverID = regexp.MustCompile(`\A[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\z`)
)

// Console reads the console of a machine on EC2 or Nova.
func Console(ctx context.Context, c config.Config, id string) (string, error) {
	own := id[strings.LastIndexByte(id, '/')+1:]
	switch {
	case ec2ID.MatchString(own) && (own == id || strings.HasPrefix(id, "aws://")):
		return asg.ReadConsole(ctx, c.AWS, own)
	case serverID.MatchString(own) && (own == id || strings.HasPrefix(id, "openstack://")):
		region, _, _ := strings.Cut(strings.TrimPrefix(id, "openstack://"), "/")
		if own == id {
			region = ""
		}
		return nova.ReadConsole(ctx, c.OpenStack, region, own)
	}
	return "", fmt.Errorf("%q is no instance of EC2 (i-...) and no server of Nova (a UUID): consoles of other clouds cannot be read", id)
}
