package services

import "testing"

func (c *corpus) testFlood(t *testing.T) {}

func (c *corpus) testRegion(t *testing.T) {}
