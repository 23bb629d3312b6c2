"""Masked"""
