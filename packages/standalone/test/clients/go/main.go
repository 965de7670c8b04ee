// Calls by the clients for Go, each as its own user. What is to be read back is in ../README.md.
package main

import (
	"fmt"
	"math"
	"os"

	cdp "github.com/customerio/cdp-analytics-go"
	"github.com/customerio/go-customerio/v3"
	rudder "github.com/rudderlabs/analytics-go/v4"
	segment "github.com/segmentio/analytics-go/v3"
)

func check(err error) {
	if err != nil {
		fmt.Println("FAILED", err)
		os.Exit(1)
	}
}

func main() {
	in, key := os.Getenv("SLUICE_INTAKE"), os.Getenv("SLUICE_WRITE_KEY")
	{
		u := "go-segment"
		c, err := segment.NewWithConfig(key, segment.Config{Endpoint: in, BatchSize: 3})
		check(err)
		check(c.Enqueue(segment.Identify{UserId: u, Traits: segment.NewTraits().SetEmail(u + "@example.com").Set("plan", "pro").Set("big", int64(9007199254740993))}))
		check(c.Enqueue(segment.Track{UserId: u, Event: "looked", Properties: segment.NewProperties().Set("k", 1)}))
		check(c.Enqueue(segment.Track{UserId: u, Event: "bought", Properties: segment.NewProperties().Set("price", 9.5)}))
		check(c.Enqueue(segment.Page{UserId: u, Name: "Home", Properties: segment.NewProperties().Set("url", "https://shop.example/")}))
		check(c.Enqueue(segment.Group{UserId: u, GroupId: "company-" + u, Traits: segment.NewTraits().SetName("Acme")}))
		check(c.Enqueue(segment.Track{UserId: u, Event: "last"}))
		check(c.Close())
	}
	{
		u := "go-cdp"
		c, err := cdp.NewWithConfig(key, cdp.Config{Endpoint: in, BatchSize: 3})
		check(err)
		check(c.Enqueue(cdp.Identify{UserId: u, Traits: cdp.NewTraits().SetEmail(u + "@example.com").Set("plan", "pro")}))
		check(c.Enqueue(cdp.Track{UserId: u, Event: "looked", Properties: cdp.NewProperties().Set("k", 1)}))
		check(c.Enqueue(cdp.Page{UserId: u, Name: "Home", Properties: cdp.NewProperties().Set("url", "https://shop.example/")}))
		check(c.Enqueue(cdp.Group{UserId: u, GroupId: "company-" + u, Traits: cdp.NewTraits().SetName("Acme")}))
		check(c.Enqueue(cdp.Track{UserId: u, Event: "last"}))
		check(c.Close())
	}
	{
		u := "go-rudder"
		c, err := rudder.NewWithConfig(key, rudder.Config{DataPlaneUrl: in, BatchSize: 3})
		check(err)
		check(c.Enqueue(rudder.Identify{UserId: u, Traits: rudder.NewTraits().SetEmail(u + "@example.com").Set("plan", "pro")}))
		check(c.Enqueue(rudder.Track{UserId: u, Event: "looked", Properties: rudder.NewProperties().Set("k", 1)}))
		check(c.Enqueue(rudder.Page{UserId: u, Name: "Home", Properties: rudder.NewProperties().Set("url", "https://shop.example/")}))
		check(c.Enqueue(rudder.Group{UserId: u, GroupId: "company-" + u, Traits: rudder.NewTraits().SetName("Acme")}))
		check(c.Enqueue(rudder.Track{UserId: u, Event: "last"}))
		check(c.Close())
	}
	{
		u := "go-track"
		c := customerio.NewTrackClient(os.Getenv("SLUICE_SITE"), os.Getenv("SLUICE_KEY"), customerio.WithURL(in))
		check(c.Identify(u, map[string]any{"email": u + "@example.com", "plan": "pro"}))
		check(c.Identify(u, nil))
		check(c.Track(u, "looked", map[string]any{"k": 1}))
		check(c.Track(u, "bare", nil))
		check(c.TrackAnonymous("anon-"+u, "seen", map[string]any{"k": 2}))
		check(c.AddDevice(u, "token", "ios", map[string]any{"last_used": 1790000001}))
		if err := c.Track(u, "nan", map[string]any{"price": math.NaN()}); err != nil {
			fmt.Println("NaN is refused by the client:", err)
		}
		check(c.Identify("go-track-second", map[string]any{"plan": "old"}))
		check(c.MergeCustomers(customerio.Identifier{Type: customerio.IdentifierTypeID, Value: u}, customerio.Identifier{Type: customerio.IdentifierTypeID, Value: "go-track-second"}))
		check(c.Track(u, "last", map[string]any{}))
	}
	fmt.Println("sent")
}
