// Command fiber is the peer "fiber": with the recover middleware, because it does not
// recover by itself, and goccy/go-json, by the guide "Make Fiber Faster" of its
// documentation (docs/guide/faster-fiber.md).
package main

import (
	"context"
	"os"
	"time"

	"github.com/goccy/go-json"
	"github.com/gofiber/fiber/v3"
	recovery "github.com/gofiber/fiber/v3/middleware/recover"

	"pinion/bench/peers/work"
)

func main() { os.Exit(work.Run(serve)) }

func serve(ctx context.Context, c work.Config) error {
	a := api{users: c.Users}
	app := fiber.New(fiber.Config{
		ReadTimeout: work.ReadTimeout, WriteTimeout: work.WriteTimeout, IdleTimeout: work.IdleTimeout,
		JSONEncoder: json.Marshal, JSONDecoder: json.Unmarshal,
	})
	app.Use(recovery.New())
	app.Get("/api/ping", a.ping)
	app.Get("/sleep", a.sleep)
	app.Get("/json", a.order)
	app.Post("/json", a.purchase)
	app.Get("/api/users", a.find)
	return app.Listen(c.Addr, fiber.ListenConfig{
		GracefulContext: ctx, ShutdownTimeout: work.StopTimeout, DisableStartupMessage: true,
	})
}

type api struct{ users *work.Store }

func (api) ping(c fiber.Ctx) error {
	c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	return c.SendString(work.OK)
}

func (a api) sleep(c fiber.Ctx) error {
	time.Sleep(work.Nap)
	return a.ping(c)
}

func (api) order(c fiber.Ctx) error {
	id, err := work.ParseID(c.Query("id"))
	if err != nil {
		return fiber.NewError(fiber.StatusBadRequest, err.Error())
	}
	return c.JSON(work.NewOrder(id))
}

func (api) purchase(c fiber.Ctx) error {
	var p work.Purchase
	if err := c.Bind().JSON(&p); err != nil {
		return fiber.NewError(fiber.StatusBadRequest, err.Error())
	}
	receipt, err := p.Receipt()
	if err != nil {
		return fiber.NewError(fiber.StatusBadRequest, err.Error())
	}
	return c.JSON(receipt)
}

func (a api) find(c fiber.Ctx) error {
	ids, err := work.ParseIDs(nil, c.Query("ids"))
	if err != nil {
		return fiber.NewError(fiber.StatusBadRequest, err.Error())
	}
	return c.JSON(a.users.Find(ids))
}
