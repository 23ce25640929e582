"""The pages: a module per group. Each reads documents of the API and renders a template."""
