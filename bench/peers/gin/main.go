// Command gin is the peer "gin": release mode, the recovery middleware without the logger
// of gin.Default, and trust in no proxy, as doc.md and the warnings of its debug mode
// advise. JSON is encoding/json, which gin uses unless it is built with a tag.
package main

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"pinion/bench/peers/standard"
	"pinion/bench/peers/work"
)

func main() { os.Exit(work.Run(serve)) }

func serve(ctx context.Context, c work.Config) error {
	a := api{users: c.Users}
	gin.SetMode(gin.ReleaseMode)
	r := gin.New()
	r.Use(gin.Recovery())
	if err := r.SetTrustedProxies(nil); err != nil {
		return err
	}
	r.GET("/api/ping", a.ping)
	r.GET("/sleep", a.sleep)
	r.GET("/json", a.order)
	r.POST("/json", a.purchase)
	r.GET("/api/users", a.find)
	return standard.Serve(ctx, c.Addr, r)
}

type api struct{ users *work.Store }

func (api) ping(c *gin.Context) {
	c.Data(http.StatusOK, "application/json", []byte(work.OK))
}

func (a api) sleep(c *gin.Context) {
	time.Sleep(work.Nap)
	a.ping(c)
}

func (api) order(c *gin.Context) {
	id, err := work.ParseID(c.Query("id"))
	if err != nil {
		c.String(http.StatusBadRequest, "%v", err)
		return
	}
	c.JSON(http.StatusOK, work.NewOrder(id))
}

func (api) purchase(c *gin.Context) {
	var p work.Purchase
	if err := c.ShouldBindJSON(&p); err != nil {
		c.String(http.StatusBadRequest, "%v", err)
		return
	}
	receipt, err := p.Receipt()
	if err != nil {
		c.String(http.StatusBadRequest, "%v", err)
		return
	}
	c.JSON(http.StatusOK, receipt)
}

func (a api) find(c *gin.Context) {
	ids, err := work.ParseIDs(nil, c.Query("ids"))
	if err != nil {
		c.String(http.StatusBadRequest, "%v", err)
		return
	}
	c.Render(http.StatusOK, sized{a.users.Find(ids)})
}

// sized is render.JSON with a Content-Length, which net/http adds by itself only to a body
// of up to 2 KiB; a longer one goes out in chunks.
type sized struct{ data any }

// Render implements render.Render.
func (s sized) Render(w http.ResponseWriter) error {
	body, err := json.Marshal(s.data)
	if err != nil {
		return err
	}
	s.WriteContentType(w)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, err = w.Write(body)
	return err
}

// WriteContentType implements render.Render.
func (sized) WriteContentType(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
}
